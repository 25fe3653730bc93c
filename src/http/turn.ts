/**
 * When a turn of the event loop has many answers, they leave together at its end. The write that
 * wakes a waiting peer takes twice as long as one to a peer that is awake: whoever waits for many
 * answers, as a proxy does, is woken once for all of them. A few answers leave one by one, so that
 * the peer goes on while the next ones are made.
 */

/** A turn with more answers than this is busy, and so, most likely, is the next one. */
const fewAnswersMax = 8;
/** In a busy turn so many answers are held back at most … */
const heldMax = 32;
/** … and for no longer than this, beside the one that is being made meanwhile. */
const heldMillisecondsMax = 1;

export interface Turn<T> {
  /** Sends an answer: now, or in a busy turn by its end. In the order in which they came. */
  send(answer: T): void;
  /** Sends now what is held back. */
  flush(): void;
}

/** `write`: sends one answer; it must not throw. `now`: milliseconds of a clock that only rises. */
export function createTurn<T>(
  write: (answer: T) => void,
  now: () => number = () => performance.now(),
): Turn<T> {
  let held: T[] = [];
  let heldSince = 0;
  let count = 0;
  let isBusy = false;

  const flush = (): void => {
    const answers = held;
    held = [];
    for (const answer of answers) write(answer);
  };
  const end = (): void => {
    isBusy = count > fewAnswersMax;
    count = 0;
    flush();
  };

  return {
    flush,
    send(answer) {
      count += 1;
      if (count === 1) setImmediate(end);
      if (!isBusy) {
        write(answer);
        return;
      }
      const at = now();
      if (held.length === 0) heldSince = at;
      held.push(answer);
      if (held.length >= heldMax || at - heldSince > heldMillisecondsMax) flush();
    },
  };
}
