/** Lists of the driver in memory: pages of arrays whose records stand in the order of their ids. */

import { type List, type Page, pageRecordsMax, type Range } from './list.ts';

interface Identified {
  readonly id: string | number;
}

/** How many of the records have a lower id. */
function countBelow(records: readonly Identified[], id: string | number): number {
  let [low, high] = [0, records.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = records[middle];
    if (at !== undefined && at.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The index of the record, or -1. Ids do not rise where the clock was wrong at the start. */
export function indexOfId(records: readonly Identified[], id: string | number): number {
  const place = countBelow(records, id);
  return records[place]?.id === id ? place : records.findIndex((record) => record.id === id);
}

/** `records`: oldest first, and so given unless `newestFirst`. */
export function createMemoryList<T extends Identified>(
  records: readonly T[],
  order: 'oldestFirst' | 'newestFirst' = 'oldestFirst',
): List<T> {
  /** The index of the first record behind the given one, and of the first before it. */
  const placeOf = (id: string | number): readonly [behind: number, before: number] => {
    const index = indexOfId(records, id);
    if (index >= 0) return [index + 1, index];
    const below = countBelow(records, id);
    return [below, below];
  };
  const read = ({ after, limit = pageRecordsMax }: Range = {}): Page<T> => {
    const next = (last: T | undefined, isLast: boolean): Page<T>['next'] =>
      isLast || last === undefined ? undefined : () => read({ after: last.id, limit });
    if (order === 'newestFirst') {
      const end = after === undefined ? records.length : placeOf(after)[1];
      const start = Math.max(0, end - limit);
      const page = records.slice(start, end).toReversed();
      return { records: page, next: next(page.at(-1), start === 0) };
    }
    const start = after === undefined ? 0 : placeOf(after)[0];
    const isLast = start + limit >= records.length;
    const page = start === 0 && isLast ? records : records.slice(start, start + limit);
    return { records: page, next: next(page.at(-1), isLast) };
  };
  return { read, exceeds: (count) => records.length > count };
}
