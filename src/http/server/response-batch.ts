/**
 * Sends responses that become ready in one iteration of the event loop together, if there are many.
 * Waking a waiting peer makes a write twice as expensive; a proxy that waits for many responses is
 * then woken once for all of them. Measured with small responses on 64 connections: 0.96 of a bare
 * server's CPU per request, 1.04 without batches.
 */

/** An iteration with more responses than this counts as busy, and the next one probably is too. */
const fewResponsesMax = 8;
/** At most this many responses are held … */
const heldMax = 32;
/** … and for at most this long, plus the time to make the last of them. */
const heldMillisecondsMax = 1;

export function createResponseBatch() {
  let held: (() => void)[] = [];
  let heldSince = 0;
  let count = 0;
  let isBusy = false;

  /** Sends the held responses now. */
  const flush = (): void => {
    const responses = held;
    held = [];
    for (const write of responses) write();
  };
  const end = (): void => {
    isBusy = count > fewResponsesMax;
    count = 0;
    flush();
  };
  /**
   * Calls `write`, which sends one response and must not throw: now or, in a busy iteration, by its
   * end. Keeps the order.
   */
  const send = (write: () => void): void => {
    count += 1;
    if (count === 1) setImmediate(end);
    if (!isBusy) {
      write();
      return;
    }
    const at = performance.now();
    if (held.length === 0) heldSince = at;
    held.push(write);
    if (held.length >= heldMax || at - heldSince > heldMillisecondsMax) flush();
  };
  return { send, flush };
}
