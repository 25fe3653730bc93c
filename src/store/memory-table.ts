/** Records in memory: by id, in lists that are read in pages, and within a limit on their bytes. */

import { setImmediate as nextIteration } from 'node:timers/promises';
import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Changes } from './changes.ts';
import { type Kind, type Listed, type RecordOf, kinds, type Options } from './shared.ts';
import { createLists, createPlaces, type Moved, valueOf } from './memory-lists.ts';
import type { MemoryRequests } from './memory-requests.ts';
import type { Changed, Once, Repeated } from './store.ts';

/** What all tables share. */
export interface TableDeps {
  readonly changes: Changes;
  /** The result of `createByteBudget`. */
  readonly take: (bytes: number) => void;
  readonly requests: MemoryRequests;
  /** Changed by who moves records; removed ones are forgotten. */
  readonly moved?: Moved;
}

export type MemoryTable<N extends Listed> = ReturnType<typeof createTable<N>>;

/** The records of a kind; each change is counted. */
export function createTable<N extends Listed>(
  deps: TableDeps,
  area: N,
  initial: readonly RecordOf[N][],
) {
  type T = RecordOf[N];
  const kind = kindOf(area);
  const { requests } = deps;
  const { find, lists, set, put, forget, count } = createRecords<T>(deps, area, kind);
  const pieces = createPieces(forget);
  put(initial);
  return {
    find,
    list: lists.list,
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
    remove: (id: string | number, { expected, once }: Options<T> = {}): Changed =>
      requests.run(once, () => {
        const record = asExpected(find(id), expected);
        deps.take(-bytesOf(record, kind));
        if (record !== undefined) set(record.id, undefined);
        return record !== undefined;
      }),
    /** Removes these records, which are there. */
    removeMany(removed: readonly T[]): void {
      lists.takeMany(removed);
      for (const record of removed) count(record.id, record);
      removed.forEach(forget);
    },
    /** Removes a list and its records; `find` has them until the result has settled. */
    removeAll(value: string): MaybePromise<void> {
      const list = lists.take(value);
      // Who has read one of the records has noted this list too (`TrackedRecords`).
      deps.changes.count(area, value);
      return pieces.run(list);
    },
    close: pieces.close,
  };
}

function createRecords<T extends RecordOf[Listed]>(
  { changes, take, moved = new Map() }: TableDeps,
  area: Listed,
  kind: Kind<T>,
) {
  const records = new Map<string | number, T>();
  const find = records.get.bind(records);
  const lists = createLists<T>(kind, createPlaces(kind, find, moved));
  const count = (id: string | number, record: T | undefined): void =>
    changes.count(area, id, kind.owner && valueOf(record, kind.owner));
  const remove = (id: string | number): void => {
    records.delete(id);
    moved.delete(id);
  };
  const set = (id: string | number, after: T | undefined): void => {
    const before = records.get(id);
    count(id, after ?? before);
    lists.change({ before, after });
    if (after === undefined) remove(id);
    else records.set(id, after);
  };
  return {
    find,
    lists,
    count,
    set,
    /** Stores all records or, if they exceed the limit, throws `storage_full` and stores none. */
    put: (changed: readonly T[]): void => {
      let bytes = 0;
      for (const after of changed) {
        bytes += bytesOf(after, kind) - bytesOf(records.get(after.id), kind);
      }
      take(bytes);
      for (const after of changed) set(after.id, after);
    },
    /** Call it with a record that is in no list any more. */
    forget: (record: T): void => {
      take(-bytesOf(record, kind));
      remove(record.id);
    },
  };
}

/** Names are copied and counted as the other texts are. */
function kindOf<N extends Listed>(area: N): Kind<RecordOf[N]> {
  const { texts, names = [], ...others }: Kind<RecordOf[N]> = kinds[area];
  return { ...others, texts: [...texts, ...names] };
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

/** Returns a record with the members of `before`, changed by `input`, whose texts are copied. */
function mergeCopied<T extends object>(
  before: Partial<T>,
  input: Partial<T>,
  { texts, lasting }: Kind<T>,
): T {
  const record = { ...before };
  for (const name in input) {
    const value = input[name];
    if (value === undefined || (lasting?.includes(name) && record[name] != null)) continue;
    const isText = texts.includes(name) && value !== null;
    record[name] = isText ? (copyText(String(value)) as typeof value) : value;
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
const recordBytes = 440;

/** The memory of a record with the client's texts. A character takes at most two bytes. */
function bytesOf<T extends object>(record: T | undefined, { texts }: Kind<T>): number {
  if (record === undefined) return 0;
  let bytes = recordBytes;
  for (const name of texts) bytes += 2 * ((record[name] as string | null)?.length ?? 0);
  return bytes;
}

/**
 * Copies the text, because V8 keeps the whole source alive for a slice or a concatenation (of 13
 * characters or more).
 */
function copyText(text: string): string {
  return text.length < 13 ? text : Buffer.from(text).toString();
}
