/** Lists that are read in pages, so that a long list needs no more memory than a page. */

import type { MaybePromise } from '../maybe-promise.ts';

/**
 * Records in a fixed order. Several pages are not a snapshot: each record appears at most once, and
 * one that exists from the first page to the last does appear.
 */
export interface List<T> {
  /** Reads the first page: from the start, or after the record with the id `after`. */
  read(range?: Range): MaybePromise<Page<T>>;
}

export interface Range {
  /** If this record was removed, reading starts at the position where it was. */
  readonly after?: string | number | undefined;
  /** Maximum number of records in a page; long records make a page shorter. */
  readonly limit?: number | undefined;
}

export interface Page<T> {
  readonly records: readonly T[];
  /** Reads the next page; undefined for the last one. */
  readonly next: (() => MaybePromise<Page<T>>) | undefined;
}

/** Appends the record to the list with this key, which is created if necessary. */
export function append<T>(lists: Map<string, T[]>, key: string, record: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [record]);
  else list.push(record);
}

/** Records of a page: they take a few milliseconds. */
export const pageRecordsMax = 500;
