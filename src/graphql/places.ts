/** Limits on what goes on at the same time. */

import { setImmediate as nextIteration } from 'node:timers/promises';
import { isPromise, type MaybePromise } from '../maybe-promise.ts';

export type Gate = <T>(read: () => MaybePromise<T>) => MaybePromise<T>;

/** Returns a function that calls `read` while fewer than `max` of them are unsettled. */
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
 * Places for large operations. A store that answers later answers many operations at once; all
 * would go on in one iteration of the event loop. So each waits for a place, and holds it until it
 * has ended:
 *
 * 1. Places are given in the order in which they are asked for, one after the other.
 * 2. Each waits until fewer than `max` are held, and then for the next iteration.
 *
 *     max 2, three ask in iteration 1: given in 2, in 3, and after one of the two has left
 */
export function createPlaces(max: number) {
  let free = max;
  let wake = (): void => undefined;
  let last = Promise.resolve();
  const give = async (): Promise<void> => {
    if (free === 0) await new Promise<void>((resolve) => (wake = resolve));
    free -= 1;
    await nextIteration();
  };
  return {
    take: (): Promise<void> => (last = last.then(give)),
    leave: (): void => {
      free += 1;
      wake();
    },
  };
}
