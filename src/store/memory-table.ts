/** Records in memory: by id, in lists that are read in pages, and within a limit on their bytes. */

import { setImmediate as nextIteration } from 'node:timers/promises';
import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Changes } from './changes.ts';
import {
  type Kind,
  type Listed,
  type RecordOf,
  kinds,
  type ListName,
  type Options,
  type Order,
} from './shared.ts';
import type { MemoryRequests } from './memory-requests.ts';
import {
  type Changed,
  type Once,
  type Page,
  pageRecordsMax,
  type Range,
  type Repeated,
} from './store.ts';

interface Identified {
  readonly id: string | number;
}

/** What all tables share. */
export interface TableDeps {
  readonly changes: Changes;
  /** The result of `createByteBudget`. */
  readonly take: (bytes: number) => void;
  readonly requests: MemoryRequests;
}

export type MemoryTable<N extends Listed> = ReturnType<typeof createTable<N>>;

/** The records of a kind; each change is counted. */
export function createTable<N extends Listed>(
  { changes, take, requests }: TableDeps,
  area: N,
  initial: readonly RecordOf[N][],
) {
  type T = RecordOf[N];
  const kind: Kind<T> = kinds[area];
  const records = new Map<string | number, T>();
  /**
   * The lists of the kind, each ordered by id. The key is the value that its records have in the
   * members that name the list: `all`, an author's id, or an author's id, a space and a status. A
   * list without records has no entry.
   */
  const lists = new Map<string, T[]>();

  const set = (id: string | number, after: T | undefined): void => {
    const before = records.get(id);
    changes.count(area, id, kind.owner && valueOf(after ?? before, kind.owner));
    changeLists(lists, kind, { id, before, after });
    if (after === undefined) records.delete(id);
    else records.set(id, after);
  };
  /** Stores all records or, if they exceed the limit, throws `storage_full` and stores none. */
  const put = (changed: readonly T[]): void => {
    let bytes = 0;
    for (const after of changed) {
      bytes += bytesOf(after, kind) - bytesOf(records.get(after.id), kind);
    }
    take(bytes);
    for (const after of changed) set(after.id, after);
  };
  const pieces = createPieces((record: T) => {
    take(-bytesOf(record, kind));
    records.delete(record.id);
  });
  const find = records.get.bind(records);
  put(initial);
  return {
    find,
    list: createList(lists, kind.order),
    add: (input: T, once?: Once): T | Repeated =>
      requests.run(once, () => {
        const record = mergeCopied({}, input, kind);
        put([record]);
        return record;
      }),
    put,
    update: (id: string, change: Partial<T>, { expected, once }: Options<T> = {}): Changed =>
      requests.run(once, () => {
        const record = asExpected(find(id), expected);
        if (record !== undefined) put([mergeCopied(record, change, kind)]);
        return record !== undefined;
      }),
    remove: (id: string, { expected, once }: Options<T> = {}): Changed =>
      requests.run(once, () => {
        const record = asExpected(find(id), expected);
        take(-bytesOf(record, kind));
        if (record !== undefined) set(record.id, undefined);
        return record !== undefined;
      }),
    /** Removes a list and its records; `find` has them until the result has settled. */
    removeAll(value: string): MaybePromise<void> {
      const list = takeList(lists, kind, value);
      if (list.length > forgottenAtOnce) changes.countEverything();
      for (const { id } of list.slice(0, forgottenAtOnce)) changes.count(area, id, value);
      return pieces.run(list);
    },
    close: pieces.close,
  };
}

/** Records that are removed in one iteration of the event loop: some milliseconds. */
const forgottenAtOnce = 2_000;

/** Calls `forget` with each record of a list, one piece in each iteration of the event loop. */
function createPieces<T>(forget: (record: T) => void) {
  const state = { isClosed: false, last: Promise.resolve() };
  const forgetAll = async (list: readonly T[]): Promise<void> => {
    for (let at = 0; at < list.length && !state.isClosed; at += forgottenAtOnce) {
      list.slice(at, at + forgottenAtOnce).forEach(forget);
      await nextIteration();
    }
  };
  return {
    /** Settles when no record is left. A short list is one piece, which is removed at once. */
    run(list: readonly T[]): MaybePromise<void> {
      if (list.length <= forgottenAtOnce) return list.forEach(forget);
      return (state.last = state.last.then(() => forgetAll(list)));
    },
    close: (): void => void (state.isClosed = true),
  };
}

function createList<T extends Identified>(lists: ReadonlyMap<string, readonly T[]>, order: Order) {
  return (name: ListName<T>) =>
    (value: string = name) => {
      const read = (range?: Range): Page<T> => readPage(lists.get(value) ?? [], order, range);
      const exceeds = (count: number, after?: Range['after']): boolean =>
        read({ after, limit: count + 1 }).records.length > count;
      return { read, exceeds };
    };
}

interface Change<T> {
  readonly id: string | number;
  readonly before: T | undefined;
  readonly after: T | undefined;
}

/** Adds, changes or removes a record in the lists of its kind. */
function changeLists<T extends Identified>(
  lists: Map<string, T[]>,
  kind: Kind<T>,
  { id, before, after }: Change<T>,
): void {
  for (const name of kind.lists) {
    const from = valueOf(before, name);
    const to = valueOf(after, name);
    if (from !== undefined) {
      const list = lists.get(from) ?? [];
      list.splice(countBelow(list, id), 1, ...(after && from === to ? [after] : []));
      if (list.length === 0) lists.delete(from);
    }
    if (after && to !== undefined && from !== to) {
      const list = lists.get(to) ?? [];
      list.splice(countBelow(list, id), 0, after);
      lists.set(to, list);
    }
  }
}

/** Removes the list of a value, and its records from the list of all. Returns the removed list. */
function takeList<T extends Identified>(
  lists: Map<string, T[]>,
  { owner }: Kind<T>,
  value: string,
): readonly T[] {
  const list = lists.get(value) ?? [];
  lists.delete(value);
  const all = lists.get('all');
  if (all && owner && list.length > 0) {
    // Not `valueOf`, with which this takes a quarter longer.
    const others = all.filter((record) => record[owner] !== (value as unknown));
    lists.set('all', others);
  }
  return list;
}

/** The value by which a list has the record; undefined if no list of this name has it. */
function valueOf<T extends object>(record: T | undefined, name: ListName<T>): string | undefined {
  if (record === undefined || name === 'all') return record && name;
  const space = name.indexOf(' ');
  if (space < 0) return (record[name as keyof T] as string | null) ?? undefined; // ids and words
  const first = valueOf(record, name.slice(0, space) as keyof T & string);
  return first && `${first} ${valueOf(record, name.slice(space + 1) as keyof T & string)}`;
}

/** Returns a record with the members of `before`, changed by `input`, whose texts are copied. */
function mergeCopied<T extends object>(
  before: Partial<T>,
  input: Partial<T>,
  { texts }: Kind<T>,
): T {
  const record = { ...before };
  for (const name in input) {
    const value = input[name];
    if (value === undefined) continue;
    record[name] = texts.includes(name) ? (copyText(String(value)) as typeof value) : value;
  }
  return record as T; // `before` or `input` has all members
}

/** Returns the record if it has the members of `expected`, else undefined. */
function asExpected<T>(record: T | undefined, expected: Partial<T> = {}): T | undefined {
  const isExpected = Object.entries(expected).every(
    ([name, value]) => record?.[name as keyof T] === value,
  );
  return isExpected ? record : undefined;
}

/** The number of records with a lower id. */
function countBelow(records: readonly Identified[], id: string | number): number {
  let [low, high] = [0, records.length];
  // A new record has the highest id: a search among 100,000 would take a tenth of `createPost`.
  const last = records.at(-1);
  if (last !== undefined && last.id < id) return high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = records[middle];
    if (at !== undefined && at.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Reads a page of records, which are ordered by id: a later record has a higher id. */
function readPage<T extends Identified>(
  records: readonly T[],
  order: Order,
  { after, limit = pageRecordsMax }: Range = {},
): Page<T> {
  const isReversed = order === 'DESC';
  let position = isReversed ? records.length : 0;
  if (after !== undefined) {
    position = countBelow(records, after);
    if (!isReversed && records[position]?.id === after) position += 1;
  }
  const start = isReversed ? Math.max(0, position - limit) : position;
  const end = isReversed ? position : Math.min(records.length, position + limit);
  const page = records.slice(start, end);
  const last = isReversed ? records[start] : records[end - 1];
  const isLast = last === undefined || (isReversed ? start === 0 : end === records.length);
  // By id, because records may be removed before the next page is read.
  const next = isLast ? undefined : () => readPage(records, order, { after: last.id, limit });
  return { records: isReversed ? page.toReversed() : page, next };
}

/** Returns a function that takes bytes, or throws `storage_full`. Less than 0 gives bytes back. */
export function createByteBudget(bytesMax: number): (bytes: number) => void {
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
function bytesOf<T extends object>(record: T | undefined, { texts }: Kind<T>): number {
  if (record === undefined) return 0;
  let bytes = recordBytes;
  for (const name of texts) bytes += 2 * String(record[name]).length;
  return bytes;
}

/**
 * Copies the text, because V8 keeps the whole source alive for a slice or a concatenation (of 13
 * characters or more).
 */
function copyText(text: string): string {
  return text.length < 13 ? text : Buffer.from(text).toString();
}
