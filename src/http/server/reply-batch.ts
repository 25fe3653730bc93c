/**
 * Sends replies that become ready in one iteration of the event loop together, if there are many.
 * Waking a waiting peer makes a write twice as expensive; a proxy that waits for many replies is
 * then woken once for all of them. Measured with small replies on 64 connections: 0.96 of a bare
 * server's CPU per request, 1.04 without batches.
 */

/** An iteration with more replies than this counts as busy, and the next one probably is too. */
const fewRepliesMax = 8;
/** At most this many replies are held … */
const heldMax = 32;
/** … and for at most this long, plus the time to make the last of them. */
const heldMillisecondsMax = 1;

export interface ReplyBatch<T> {
  /** Sends a reply: now or, in a busy iteration, by its end. Keeps the order. */
  send(reply: T): void;
  /** Sends the held replies now. */
  flush(): void;
}

/** `write` sends one reply and must not throw. `now`: milliseconds of a monotonic clock. */
export function createReplyBatch<T>(
  write: (reply: T) => void,
  now: () => number = () => performance.now(),
): ReplyBatch<T> {
  let held: T[] = [];
  let heldSince = 0;
  let count = 0;
  let isBusy = false;

  const flush = (): void => {
    const replies = held;
    held = [];
    for (const reply of replies) write(reply);
  };
  const end = (): void => {
    isBusy = count > fewRepliesMax;
    count = 0;
    flush();
  };

  return {
    flush,
    send(reply) {
      count += 1;
      if (count === 1) setImmediate(end);
      if (!isBusy) {
        write(reply);
        return;
      }
      const at = now();
      if (held.length === 0) heldSince = at;
      held.push(reply);
      if (held.length >= heldMax || at - heldSince > heldMillisecondsMax) flush();
    },
  };
}
