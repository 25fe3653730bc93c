/** The time limit of a connection to PostgreSQL for each of its statements. */

import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';

/** When the server, which ends a statement by itself, is asked about one; and when that is over. */
const askMilliseconds = 250;
const answerMilliseconds = 750;

/**
 * Closes the connection of a statement that is not answered a second after its time, unless it is
 * being executed. With the package's `query_timeout`, which makes a timer for each statement,
 * results outlived two collections of the garbage collector: moving them took a quarter of the time
 * of reading pages.
 */
export function createTimeLimit(
  stream: Duplex,
  seconds: number,
  isAtWork: () => Promise<boolean> | undefined,
) {
  let isRunning = true;
  let started = 0;
  const judge = async (): Promise<void> => {
    if (!isRunning) return;
    const judged = started;
    let isKept = false;
    void isAtWork()?.then(
      (is) => (isKept = is),
      () => undefined,
    );
    await pause(answerMilliseconds, undefined, { ref: false });
    if (!isRunning || started !== judged) return;
    if (isKept) timer.refresh();
    else stream.destroy(new Error('Query read timeout'));
  };
  const timer = setTimeout(() => void judge(), seconds * 1000 + askMilliseconds).unref();
  return {
    start(): void {
      isRunning = true;
      started += 1;
      timer.refresh();
    },
    stop(): void {
      isRunning = false;
    },
  };
}
