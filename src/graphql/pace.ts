/** Keeps what a store has answered from being worked on all at once. */

import { setImmediate as nextIteration } from 'node:timers/promises';

/**
 * Returns a function that resolves when what a store has answered may be worked on: for as many
 * objects in one iteration of the event loop, first come, first served. A database answers many
 * lists by one statement, and all that wait for them would go on in the same iteration (R47).
 *
 *     most 250:  lists of 200, 200 and 10 objects are answered together
 *     the first two go on at once (nothing is left then), the third in the next iteration
 */
export function createPace(most: number): (objects: number) => Promise<void> {
  let left = most;
  let last = Promise.resolve();
  const goOn = async (objects: number): Promise<void> => {
    if (left <= 0) await nextIteration();
    if (left === most) setImmediate(() => (left = most));
    left -= objects;
  };
  return (objects) => (last = last.then(() => goOn(objects)));
}
