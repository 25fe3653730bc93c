/** Lists that are read page by page, so that a long one costs no more memory than a page. */

import type { MaybePromise } from '../maybe-promise.ts';

/**
 * Records in one order. What is read is no snapshot where it takes more than a page: a record is
 * given once at most, and one that is there from the first page to the last is given.
 */
export interface List<T> {
  /** The first page: from the start, or from behind the record with the id `after`. */
  read(range?: Range): MaybePromise<Page<T>>;
  /** Whether there are more records than `count`, for less than it costs to read them. */
  exceeds(count: number): MaybePromise<boolean>;
}

export interface Range {
  /** Where this record has gone meanwhile, those that came behind it are given. */
  readonly after?: string | number | undefined;
  /** Records of a page at most; long ones make a page shorter. */
  readonly limit?: number | undefined;
}

export interface Page<T> {
  readonly records: readonly T[];
  /** Reads the next page; undefined where this is the last one. */
  readonly next: (() => MaybePromise<Page<T>>) | undefined;
}

/** Puts the record behind those of its list, which begins with it where there is none. */
export function append<T>(lists: Map<string, T[]>, key: string, record: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [record]);
  else list.push(record);
}

/** Records of a page: a few milliseconds of work. */
export const pageRecordsMax = 500;
