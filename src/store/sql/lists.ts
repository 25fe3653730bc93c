/** Finds and lists in SQL, for both drivers. */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import { kinds, type Listed, type ListName, type RecordOf } from '../shared.ts';
import { type List, type Page, pageRecordsMax, type RecordText } from '../store.ts';
import { type Cells, namesOf, type Table, toRecord, toSelecting } from './rows.ts';
import {
  type Key,
  type PageExpressions,
  pageParameters,
  type PageQuery,
  type PageStart,
  type RowPage,
  type Sql,
  toPageValues,
} from './statements.ts';

/** Returns a function that finds the record whose column has a value. */
export function createFind<N extends Table>(
  sql: Sql,
  [table, column]: readonly [N, Key[1]],
): (value: string | number) => MaybePromise<RecordOf[N] | undefined> {
  const find = sql.createFind([table, column]);
  return (value) => andThen(find(value), (cells) => cells && toRecord[table](cells));
}

/** The source of the rows of a list: what follows `SELECT … FROM`, and the column of positions. */
export function createSource(sql: Sql, table: Listed, owner: string | undefined) {
  const { order } = kinds[table];
  const name = `${sql.schema}${table}`;
  // Articles are ordered by id, other records by the order in which they were stored (R2).
  const place = table === 'articles' ? 'id' : 'seq';
  const [beyond, start] = order === 'ASC' ? ['>', 0] : ['<', Number.MAX_SAFE_INTEGER];
  /** The position of a record; of a removed one, the position of the record with the nearest id. */
  const positionOf = (id: string): string => {
    const [nearest, direction] = order === 'ASC' ? ['<=', 'DESC'] : ['>=', 'ASC'];
    return `coalesce((SELECT seq FROM ${name} WHERE id ${nearest} ${id}
      ORDER BY id ${direction} LIMIT 1), ${start})`;
  };
  return {
    place,
    /** The position before the first record. */
    start,
    /** Selects up to `limit` rows after a position, or after an id. */
    from: (isAfterId: boolean, { owner: value, after, limit }: PageExpressions): string => {
      const position = isAfterId ? positionOf(after) : after;
      return owner === undefined
        ? `${name} WHERE ${place} ${beyond} ${position} ORDER BY ${place} ${order} LIMIT ${limit}`
        : sql.ofOne(table, order, { column: owner, owner: value, place: position, limit });
    },
  };
}

type ReadPage<T> = (
  start: PageStart,
  members?: readonly string[],
) => MaybePromise<Page<T | RecordText>>;

/**
 * Returns the lists of a table by the value of the member that they are named after. A page is read
 * by position (keyset), so that no cursor stays open between two pages.
 */
export function createList<N extends Listed>(
  sql: Sql,
  table: N,
  list: ListName<RecordOf[N]> = 'all',
): (value?: string) => List<RecordOf[N]> {
  const owner = list === 'all' ? undefined : toSelecting(list);
  const { place, start, from } = createSource(sql, table, owner);
  const columns = namesOf(table);
  const ownerAt = columns.indexOf(owner ?? '');
  const toListed = (row: Cells | RecordText, value?: string): RecordOf[N] | RecordText => {
    if (isText(row)) return row;
    if (value !== undefined && ownerAt >= 0) row[ownerAt] = value;
    return toRecord[table](row);
  };
  const toPage = (
    { rows, isCut }: RowPage,
    { owner: value, limit }: PageStart,
    members?: readonly string[],
  ): Page<RecordOf[N] | RecordText> => {
    // One more row was read, to know whether there is a next page.
    const isLast = !isCut && rows.length < limit;
    const found = isLast ? rows : rows.slice(0, limit - 1);
    const last = found.at(-1);
    const records = found.map((row) => toListed(row, value));
    if (isLast || last === undefined) return { records, next: undefined };
    const after = isText(last) ? last.id : Number(last[columns.length]);
    return { records, next: () => read({ owner: value, after, limit }, members) };
  };
  /** One reader for each text of a statement, by what the text depends on. */
  const readers = new Map<string, ReadPage<RecordOf[N]>>();
  const read: ReadPage<RecordOf[N]> = (at, members) => {
    const kind = typeof at.after;
    const name = members === undefined ? kind : `${kind} ${members.join()}`;
    let reader = readers.get(name);
    if (reader === undefined) {
      const isAfterId = kind === 'string';
      const toText: PageQuery['toText'] = (selected, values) =>
        `SELECT ${selected}, ${place} AS place FROM ${from(isAfterId, values)}`;
      const query = { table, order: kinds[table].order, owner, isAfterId, toText, members };
      reader = sql.createPages(query, (rows, began) => toPage(rows, began, members));
      readers.set(name, reader);
    }
    return reader(at);
  };
  const countFrom = (isAfterId: boolean): string =>
    `SELECT count(*) AS n FROM (
      SELECT 1 FROM ${from(isAfterId, pageParameters(owner !== undefined))}) AS found`;
  const [countAfterPosition, countAfterId] = [countFrom(false), countFrom(true)];
  return (value) => ({
    // A page that is read without members has no texts, but records.
    read: ({ after = start, limit = pageRecordsMax } = {}) =>
      read({ owner: value, after, limit: limit + 1 }) as MaybePromise<Page<RecordOf[N]>>,
    readJson: ({ after = start, limit = pageRecordsMax }, members) =>
      read({ owner: value, after, limit: limit + 1 }, members),
    exceeds(count, after = start) {
      const text = typeof after === 'string' ? countAfterId : countAfterPosition;
      const values = toPageValues({ owner: value, after, limit: count + 1 });
      return andThen(sql.read(text, values), ([row]) => Number(row?.['n']) > count);
    },
  });
}

function isText(row: Cells | RecordText): row is RecordText {
  return !Array.isArray(row);
}
