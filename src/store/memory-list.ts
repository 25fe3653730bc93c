/** Lists of the in-memory driver: pages of arrays, which are ordered by id. */

import { type List, type Page, pageRecordsMax, type Range } from './list.ts';

interface Identified {
  readonly id: string | number;
}

/** The number of records with a lower id. */
export function countBelow(records: readonly Identified[], id: string | number): number {
  let [low, high] = [0, records.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = records[middle];
    if (at !== undefined && at.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The index of the record, or -1. The ids are not sorted if the clock was wrong at the start. */
export function indexOfId(records: readonly Identified[], id: string | number): number {
  const place = countBelow(records, id);
  return records[place]?.id === id ? place : records.findIndex((record) => record.id === id);
}

/** `records` is ordered oldest first. */
export function createMemoryList<T extends Identified>(
  records: readonly T[],
  order: 'oldestFirst' | 'newestFirst' = 'oldestFirst',
): List<T> {
  const isReversed = order === 'newestFirst';
  /** The position after the record or, if it was removed, where it would be. */
  const placeBehind = (id: string | number): number => {
    const index = indexOfId(records, id);
    if (index < 0) return countBelow(records, id);
    return isReversed ? index : index + 1;
  };
  const readFrom = (place: number, limit: number): Page<T> => {
    const start = isReversed ? Math.max(0, place - limit) : place;
    const end = isReversed ? place : Math.min(records.length, place + limit);
    const isWhole = start === 0 && end === records.length;
    const page = isWhole && !isReversed ? records : records.slice(start, end);
    const last = isReversed ? records[start] : records[end - 1];
    const isLast = isReversed ? start === 0 : end === records.length;
    // By id, because records may be removed before the next page is read.
    const next = isLast || last === undefined ? undefined : () => read({ after: last.id, limit });
    return { records: isReversed ? page.toReversed() : page, next };
  };
  const read = ({ after, limit = pageRecordsMax }: Range = {}): Page<T> => {
    const first = isReversed ? records.length : 0;
    return readFrom(after === undefined ? first : placeBehind(after), limit);
  };
  return { read };
}
