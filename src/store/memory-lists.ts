/**
 * The lists of the records of a kind in memory, each an array in the order of the places of its
 * records: of their ids or, of published posts, of their dates and then their ids (R49).
 */

import { BoundedMap } from '../bounded-map.ts';
import { type Kind, type ListName, dateById, placeOf, removedPostsMax } from './shared.ts';
import { type List, type Page, pageRecordsMax, type Range } from './store.ts';

interface Identified {
  readonly id: string | number;
}
type Place = string | number;

export interface MemoryList<T> extends List<T> {
  read(range?: Range): Page<T>;
}

/** The places of records that were stored before they got one (R48), by id. */
export type Moved = Map<Place, string>;

interface Change<T> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

type Find<T> = (id: Place) => T | undefined;
type ToPlace<T> = (record: T) => Place;

export function createLists<T extends Identified>(kind: Kind<T>, places: Places<T>) {
  const { owner } = kind;
  /**
   * The key is the value that the records of a list have in the members that name it: `all`, an
   * author's id, or an author's id, a space and a status. A list without records has no entry.
   */
  const lists = new Map<string, T[]>();

  const recordsOf = (value: string): T[] => lists.get(value) ?? [];
  const positionOf = (value: string, record: T): number => {
    const toPlace = places.of(value);
    return countBelow(recordsOf(value), toPlace, toPlace(record));
  };
  return {
    /** Adds, changes or removes a record. */
    change({ before, after }: Change<T>): void {
      if (before && after === undefined) places.keep(before);
      for (const name of kind.lists) {
        const from = valueOf(before, name);
        const to = valueOf(after, name);
        if (before && from !== undefined) {
          const list = recordsOf(from);
          const at = positionOf(from, before);
          list.splice(at, 1, ...(after && from === to ? [after] : []));
          if (list.length === 0) lists.delete(from);
        }
        if (after && to !== undefined && from !== to) {
          const list = recordsOf(to);
          list.splice(positionOf(to, after), 0, after);
          lists.set(to, list);
        }
      }
    },
    /** Removes records. Each list is gone through once. */
    takeMany(removed: readonly T[]): void {
      const gone = new Set(removed);
      const values = removed.flatMap((record) => kind.lists.map((name) => valueOf(record, name)));
      for (const value of new Set(values)) {
        if (value === undefined) continue;
        const left = recordsOf(value).filter((record) => !gone.has(record));
        if (left.length === 0) lists.delete(value);
        else lists.set(value, left);
      }
    },
    /** Removes the list of a value, and its records from the list of all. Returns that list. */
    take(value: string): readonly T[] {
      const list = recordsOf(value);
      lists.delete(value);
      const all = lists.get('all');
      if (all && owner && list.length > 0) {
        // Not `valueOf`, with which this takes a quarter longer.
        const others = all.filter((record) => record[owner] !== (value as unknown));
        lists.set('all', others);
      }
      return list;
    },
    list:
      (name: ListName<T>, order = kind.order) =>
      (value: string = name): MemoryList<T> => ({
        read({ after, limit = pageRecordsMax } = {}) {
          const list = { order, toPlace: places.of(value), records: () => recordsOf(value) };
          return readPage(list, after === undefined ? undefined : places.find(value, after), limit);
        },
      }),
  };
}

type Places<T extends Identified> = ReturnType<typeof createPlaces<T>>;

/** The places of records in a list of a value. `find` finds a record by its id. */
export function createPlaces<T extends Identified>(
  { dated }: Kind<T>,
  find: Find<T>,
  moved: Moved,
) {
  /** The dates of the removed records that had one. */
  const removed = new BoundedMap<string>(removedPostsMax);
  const dateOf = (record: T | undefined) =>
    (dated && record?.[dated.member]) as string | null | undefined;
  const isDated = (value: string): boolean => dated !== undefined && value.endsWith(dated.status);
  const byId: ToPlace<T> = ({ id }) => moved.get(id) ?? id;
  const byDate: ToPlace<T> = (record) => placeOf(String(dateOf(record)), String(record.id));
  return {
    of: (value: string): ToPlace<T> => (isDated(value) ? byDate : byId),
    /** The place of an id, also of a record that was removed. */
    find: (value: string, id: Place): Place =>
      typeof id === 'string' && isDated(value)
        ? placeOf(dateOf(find(id)) ?? removed.get(id) ?? dateById(id), id)
        : (moved.get(id) ?? id),
    /** Call it with a record that is removed. */
    keep(record: T): void {
      const date = dateOf(record);
      if (date != null) removed.set(String(record.id), date);
    },
  };
}

interface Ordered<T> {
  readonly order: Kind<T>['order'];
  readonly toPlace: ToPlace<T>;
  readonly records: () => readonly T[];
}

/** Reads a page after a place: a later record has a higher one. */
function readPage<T>(list: Ordered<T>, after: Place | undefined, limit: number): Page<T> {
  const { order, toPlace } = list;
  const records = list.records();
  const isReversed = order === 'DESC';
  let position = isReversed ? records.length : 0;
  if (after !== undefined) {
    position = countBelow(records, toPlace, after);
    const at = records[position];
    if (!isReversed && at !== undefined && toPlace(at) === after) position += 1;
  }
  const start = isReversed ? Math.max(0, position - limit) : position;
  const end = isReversed ? position : Math.min(records.length, position + limit);
  const page = records.slice(start, end);
  const last = isReversed ? records[start] : records[end - 1];
  const isLast = last === undefined || (isReversed ? start === 0 : end === records.length);
  // By place, because records may be removed before the next page is read.
  const next = isLast ? undefined : () => readPage(list, toPlace(last), limit);
  return { records: isReversed ? page.toReversed() : page, next };
}

/** The value by which a list has the record; undefined if no list of this name has it. */
export function valueOf<T extends object>(
  record: T | undefined,
  name: ListName<T>,
): string | undefined {
  if (record === undefined || name === 'all') return record && name;
  const space = name.indexOf(' ');
  if (space < 0) return (record[name as keyof T] as string | null) ?? undefined; // ids and words
  const first = valueOf(record, name.slice(0, space) as keyof T & string);
  return first && `${first} ${valueOf(record, name.slice(space + 1) as keyof T & string)}`;
}

/** The number of records with a lower place. */
function countBelow<T>(records: readonly T[], toPlace: ToPlace<T>, place: Place): number {
  let [low, high] = [0, records.length];
  // A new record has the highest place: a search among 100,000 would take a tenth of `createPost`.
  const last = records.at(-1);
  if (last !== undefined && toPlace(last) < place) return high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = records[middle];
    if (at !== undefined && toPlace(at) < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
