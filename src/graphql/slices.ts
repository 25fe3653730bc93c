/** Long lists in slices: other requests get their turn while one of them asks for everything. */

import { setImmediate } from 'node:timers/promises';
import type { MaybePromise } from '../maybe-promise.ts';

/** Records of one slice: with their related records a few milliseconds of work. */
export const sliceLength = 250;

/**
 * The list itself while it is short: values cost no promise. Of a longer one the records beyond
 * the first slice are promises, which a later turn of the event loop keeps slice by slice.
 */
export function inSlices<T>(list: readonly T[]): readonly MaybePromise<T>[] {
  if (list.length <= sliceLength) return list;
  let turn = Promise.resolve();
  return list.map((record, index) => {
    if (index < sliceLength) return record;
    if (index % sliceLength === 0) turn = turn.then(nextTurn);
    return turn.then(() => record);
  });
}

function nextTurn(): Promise<void> {
  return setImmediate(undefined);
}
