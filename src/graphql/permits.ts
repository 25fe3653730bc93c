/** Limits on the work that goes on at the same time: a gate for reads, permits for operations. */

import { setImmediate as nextIteration } from 'node:timers/promises';
import { isPromise, type MaybePromise } from '../maybe-promise.ts';

export type Gate = <T>(read: () => MaybePromise<T>) => MaybePromise<T>;

/** Returns a function that calls `read` when fewer than `max` earlier reads are unsettled. */
export function createGate(max: number): Gate {
  const waiting: (() => void)[] = [];
  let count = 0;
  return <T>(read: () => MaybePromise<T>): MaybePromise<T> => {
    const turn = () => new Promise<void>((resolve) => void waiting.push(resolve));
    const result = count < max ? read() : turn().then(read);
    if (!isPromise(result)) return result;
    count += 1;
    return result.finally(() => {
      count -= 1;
      waiting.shift()?.();
    });
  };
}

/**
 * A semaphore for large operations. A store that returns a promise answers many operations at once,
 * and all of them would go on in one iteration of the event loop. So each operation acquires a
 * permit, and holds the permit until the operation has ended:
 *
 * 1. Permits are given in the order in which they are asked for, one after the other.
 * 2. A permit is given when fewer than `max` are held, in the next iteration.
 *
 *     max 2, three ask in iteration 1: given in 2, in 3, and after one of the two was released
 */
export function createPermits(max: number) {
  let free = max;
  let wake = (): void => undefined;
  let last = Promise.resolve();
  const give = async (): Promise<void> => {
    if (free === 0) await new Promise<void>((resolve) => (wake = resolve));
    free -= 1;
    await nextIteration();
  };
  return {
    acquire: (): Promise<void> => (last = last.then(give)),
    release: (): void => {
      free += 1;
      wake();
    },
  };
}
