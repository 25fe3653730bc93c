/**
 * Makes and delivers the events of all groups one after the other, so that only one is being made,
 * and others are served in between when an iteration of the event loop has had its time.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { MemoryPool } from '../../memory-pool.ts';
import type { Scheduler } from '../../scheduler.ts';

/** Resolves when `work` has run after the work queued before it. */
export type EventQueue = <T>(work: () => Promise<T>, isHeavy: boolean) => Promise<T>;

/** How often heavy work that waits for memory looks for it … */
const lookMilliseconds = 50;
/** … and how often at most: in ten seconds those who do not read are disconnected. */
const looksMax = 200;

export function createEventQueue(
  scheduler: Scheduler,
  pool: Pick<MemoryPool, 'isOver'>,
): EventQueue {
  const one = createLine();
  const oneHeavy = createLine();
  const run: EventQueue = (work) =>
    one(async () => {
      await scheduler.turn();
      return work();
    });
  return (work, isHeavy) => {
    if (!isHeavy) return run(work, false);
    // Only one waits among the light ones, so that each of them waits for one heavy at most.
    return oneHeavy(async () => {
      for (let looks = 0; pool.isOver && looks < looksMax; looks += 1) {
        await delay(lookMilliseconds, undefined, { ref: false });
      }
      return run(work, true);
    });
  };
}

/** Returns a function that runs one work after the other. */
function createLine(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
}
