/** Records in memory: by id, in lists that are read in pages, and within a limit on their bytes. */

import { AppError } from '../errors.ts';
import {
  type Kind,
  type Listed,
  type RecordOf,
  kinds,
  type ListName,
  type Order,
} from './drivers.ts';
import { type Page, pageRecordsMax, type Range, type Versions } from './store.ts';

interface Identified {
  readonly id: string | number;
}

/** What all tables share. */
export interface TableDeps {
  readonly versions: Versions;
  /** The result of `createTake`. */
  readonly take: (bytes: number) => void;
}

/** The records of a kind; each change increments the version of its area. */
export function createTable<N extends Exclude<Listed, 'articles'>>(
  { versions, take }: TableDeps,
  area: N,
  initial: readonly RecordOf[N][],
) {
  type T = RecordOf[N];
  const kind: Kind<T> = kinds[area];
  const records = new Map<string, T>();
  /** By value; oldest first. A list without records has no entry. */
  const lists = new Map<string, T[]>();

  /** Adds, changes or removes a record. */
  const write = (id: string, before: T | undefined, after: T | undefined): void => {
    take(bytesOf(after, kind) - bytesOf(before, kind));
    versions[area] += 1;
    const from = listsOf(before, kind);
    const to = listsOf(after, kind);
    for (const name of from) {
      if (to.includes(name)) continue;
      const list = lists.get(name) ?? [];
      list.splice(indexOfId(list, id), 1);
      if (list.length === 0) lists.delete(name);
    }
    if (after === undefined) return void records.delete(id);
    records.set(id, after);
    for (const name of to) {
      const list = lists.get(name);
      if (list === undefined) lists.set(name, [after]);
      else if (before === undefined) list.push(after);
      else if (from.includes(name)) list[indexOfId(list, id)] = after;
      else list.splice(countBelow(list, id), 0, after);
    }
  };
  /** Throws `storage_full`, as `update` does. */
  const add = (given: T): T => {
    const record = toOwn({}, given, kind);
    write(record.id, undefined, record);
    return record;
  };
  /** Returns false if there is no record with this id and these members. */
  const replace = (
    id: string,
    change: (record: T) => T | undefined,
    expected: Partial<T> = {},
  ): boolean => {
    const record = records.get(id);
    if (record === undefined || !hasMembers(record, expected)) return false;
    write(id, record, change(record));
    return true;
  };
  for (const record of initial) add(record);
  return {
    add,
    find: (id: string) => records.get(id),
    list: (name: ListName<T>, value: string = name) => ({
      read: (range?: Range) => readPage(lists.get(value) ?? [], kind.order, range),
    }),
    update: (id: string, change: Partial<T>, expected?: Partial<T>) =>
      replace(id, (record) => toOwn(record, change, kind), expected),
    remove: (id: string, expected?: Partial<T>) => replace(id, () => undefined, expected),
    /** Removes all records of a list. */
    removeAll(name: string): void {
      const list = lists.get(name) ?? [];
      // At once, so that no record is looked for in it.
      lists.delete(name);
      for (const record of list) write(record.id, record, undefined);
    },
  };
}

/** The values of the lists that contain a record. */
function listsOf<T extends object>(record: T | undefined, { lists }: Kind<T>): readonly string[] {
  if (record === undefined) return [];
  const values = lists.map((name) => (name === 'all' ? name : record[name]));
  return values.filter((value) => value !== null).map(String);
}

/** The members of both, with copies of the client's texts that are given. */
function toOwn<T extends object>(before: Partial<T>, given: Partial<T>, { texts }: Kind<T>): T {
  const record = { ...before };
  for (const name in given) {
    const value = given[name];
    if (value === undefined) continue;
    record[name] = texts.includes(name) ? (copyText(String(value)) as typeof value) : value;
  }
  return record as T; // one of them is whole
}

function hasMembers<T>(record: T, expected: Partial<T>): boolean {
  return Object.entries(expected).every(([name, value]) => record[name as keyof T] === value);
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
function indexOfId(records: readonly Identified[], id: string | number): number {
  const place = countBelow(records, id);
  return records[place]?.id === id ? place : records.findIndex((record) => record.id === id);
}

/** Reads a page of records, which are ordered oldest first. */
export function readPage<T extends Identified>(
  records: readonly T[],
  order: Order,
  { after, limit = pageRecordsMax }: Range = {},
): Page<T> {
  const isReversed = order === 'DESC';
  let place = isReversed ? records.length : 0;
  if (after !== undefined) {
    const index = indexOfId(records, after);
    if (index < 0) place = countBelow(records, after);
    else place = isReversed ? index : index + 1;
  }
  const start = isReversed ? Math.max(0, place - limit) : place;
  const end = isReversed ? place : Math.min(records.length, place + limit);
  const isWhole = start === 0 && end === records.length;
  const page = isWhole && !isReversed ? records : records.slice(start, end);
  const last = isReversed ? records[start] : records[end - 1];
  const isLast = last === undefined || (isReversed ? start === 0 : end === records.length);
  // By id, because records may be removed before the next page is read.
  const next = isLast ? undefined : () => readPage(records, order, { after: last.id, limit });
  return { records: isReversed ? page.toReversed() : page, next };
}

/** What it returns throws `storage_full` if fewer bytes are left. Less than 0 gives back. */
export function createTake(bytesMax: number): (bytes: number) => void {
  let left = bytesMax;
  return (bytes) => {
    if (bytes > left && bytes > 0) {
      throw new AppError('storage_full', 'The store has no room for more.');
    }
    left -= bytes;
  };
}

/** A record without its texts: the object, its id, its entries in maps and lists. */
const recordBytes = 400;

/** The memory of a record with the client's texts. A character takes at most two bytes. */
export function bytesOf<T extends object>(record: T | undefined, { texts }: Kind<T>): number {
  if (record === undefined) return 0;
  return texts.reduce((sum, name) => sum + 2 * String(record[name]).length, recordBytes);
}

/**
 * Copies the text, because V8 keeps the whole source alive for a slice or a concatenation (of 13
 * characters or more).
 */
export function copyText(text: string): string {
  return text.length < 13 ? text : Buffer.from(text).toString();
}
