/**
 * What each SQL driver provides for the shared statements, and what is made of it: lists, finds and
 * inserts. A statement uses its parameters `$1`, `$2`, … once each and in this order.
 */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import { kinds, type Listed, type Order, type RecordOf, tooLongToChange } from '../shared.ts';
import { namesOf, type NewRow, type Row, type Table, toRecord, type Value } from './rows.ts';
import { type List, type Page, pageRecordsMax, type RecordText } from '../store.ts';

export interface Sql {
  /** The prefix of table names. */
  readonly schema: string;
  /**
   * What follows `FROM` to read the rows of one owner after a position, in this order. Forces the
   * use of an index: if a few owners have most rows, statistics overestimate those of every owner,
   * and the planner may read the whole table.
   */
  ofOne(table: Table, order: Order, at: OwnedPlace): string;
  /** Reads the row whose column, which is unique, has this value. */
  find(key: Key, value: string | number): MaybePromise<Row | undefined>;
  /** Runs a statement that only reads. */
  read(text: string, values: readonly Value[]): MaybePromise<readonly Row[]>;
  /** Stores a new row. */
  insert(table: Table, row: NewRow): Promise<unknown>;
  /**
   * Runs a statement that writes, as a whole or not at all, and returns the rows of its RETURNING
   * clause: the ids of the changed records and of their owners, by which SQLite counts changes.
   */
  write(...statement: Write): Promise<readonly Row[]>;
  /** Reads a page of a list, which ends after a mebibyte of text. */
  readPage<T>(query: PageQuery, toPage: (page: RowPage) => T): MaybePromise<T>;
  /**
   * Reads these columns of all articles, up to `changedLengthMax`, for a change of all. `askedAt`:
   * when that was asked for, if its time is limited.
   */
  readArticles(columns: string, askedAt?: number): MaybePromise<RowPage>;
}

export type Key = readonly [table: Table, column: 'id' | 'username'];
export type Write = readonly [table: string, text: string, values: readonly Value[]];

export interface PageQuery {
  /** Identifies the text. */
  readonly name: string;
  readonly table: Table;
  readonly order: Order;
  /** Selects these columns of rows ordered by `place`, with these expressions for its values. */
  readonly toText: (columns: string, values: PageExpressions) => string;
  /** The position, or the id of the record, after which the page begins. */
  readonly after: number | string;
  /** Maximum number of rows. */
  readonly limit: number;
  readonly owner?: Owner | undefined;
  /** What has to be read: the rows of an owner have it in common. */
  readonly columns: readonly string[];
  /** A driver may return rows as JSON with these members. */
  readonly members?: readonly string[] | undefined;
}

type PageValues = Pick<PageQuery, 'owner' | 'after' | 'limit'>;

interface PageExpressions {
  readonly owner: string;
  readonly after: string;
  readonly limit: string;
}

/** A column that selects rows, which in most cases references their owner, and its value. */
type Owner = readonly [column: string, value: string];
/** `place`: an expression for the position. */
type OwnedPlace = Omit<PageExpressions, 'after'> & Readonly<Record<'column' | 'place', string>>;

/** The parameters of a page. */
export function pageParameters(isOwned: boolean): PageExpressions {
  return isOwned
    ? { owner: '$1', after: '$2', limit: '$3' }
    : { owner: '', after: '$1', limit: '$2' };
}

/** The values of these parameters. */
export function toPageValues({ owner, after, limit }: PageValues): readonly Value[] {
  return owner === undefined ? [after, limit] : [owner[1], after, limit];
}

export interface RowPage {
  readonly rows: readonly Row[];
  /** The limit on bytes was exceeded, so there may be more rows. */
  readonly isCut: boolean;
}

/** A page ends after this many bytes of text. */
export const pageBytesMax = 1_048_576;

/** Returns a function that finds the record whose column has a value. */
export function findBy<N extends Table>(
  sql: Sql,
  [table, column]: readonly [N, Key[1]],
): (value: string | number) => MaybePromise<RecordOf[N] | undefined> {
  return (value) => andThen(sql.find([table, column], value), (row) => row && toRecord(table, row));
}

/** Moves the counter to the next free value and returns that (R15). */
export function nextArticleId(schema: string): string {
  const articles = `${schema}articles`;
  const isFree = (id: string): string =>
    `NOT EXISTS (SELECT 1 FROM ${articles} AS other WHERE other.id = ${id})`;
  // The next value or, if it is taken, the one after the first id without a successor.
  return `UPDATE ${schema}counters SET value = coalesce(
      (SELECT value + 1 WHERE ${isFree('value + 1')}),
      (SELECT id + 1 FROM ${articles} AS taken
        WHERE id > value AND ${isFree('taken.id + 1')} ORDER BY id LIMIT 1)
    ) WHERE name = 'articles' RETURNING value`;
}

/** Returns all rows. Throws `content_too_large` if they exceed the limit. */
export function wholeOf({ rows, isCut }: RowPage): readonly Row[] {
  if (isCut) throw tooLongToChange();
  return rows;
}

/** `owner`: of the records; default: all records. */
export function createList<N extends Listed>(sql: Sql, table: N, owner?: Owner): List<RecordOf[N]> {
  const { order } = kinds[table];
  const name = `${sql.schema}${table}`;
  const columns = namesOf(table).filter((column) => column !== owner?.[0]);
  const common = owner && { [owner[0]]: owner[1] };
  // Articles are ordered by id, other records by the order in which they were stored (R2).
  const key = table === 'articles' ? 'id' : 'seq';
  const [beyond, start] = order === 'ASC' ? ['>', 0] : ['<', Number.MAX_SAFE_INTEGER];
  /** The position of a record; if it was removed, that of the nearest id, about as old. */
  const placeOf = (id: string): string => {
    const [nearest, direction] = order === 'ASC' ? ['<=', 'DESC'] : ['>=', 'ASC'];
    return `coalesce((SELECT seq FROM ${name} WHERE id ${nearest} ${id}
      ORDER BY id ${direction} LIMIT 1), ${start})`;
  };
  /** What follows `FROM` to read so many rows after a position or an id. */
  const rowsFrom = (kind: string, { owner: id, after, limit }: PageExpressions): string => {
    const place = kind === 'number' ? after : placeOf(after);
    return owner
      ? sql.ofOne(table, order, { column: owner[0], owner: id, place, limit })
      : `${name} WHERE ${key} ${beyond} ${place} ORDER BY ${key} ${order} LIMIT ${limit}`;
  };
  const readFrom = (
    after: number | string,
    limit: number,
    members?: readonly string[],
  ): MaybePromise<Page<RecordOf[N] | RecordText>> => {
    const kind = typeof after;
    return sql.readPage(
      {
        name: `${table} ${owner?.[0] ?? ''} ${kind} ${members?.join() ?? ''}`,
        table,
        order,
        toText: (selected, values) =>
          `SELECT ${key} AS place, ${selected} FROM ${rowsFrom(kind, values)}`,
        after,
        // One more row is read, to know whether there is a next page.
        limit: limit + 1,
        owner,
        columns,
        members,
      },
      ({ rows, isCut }) => {
        const read = rows.slice(0, limit);
        const last = read.at(-1);
        const isLast = last === undefined || (!isCut && rows.length <= limit);
        const next = isLast
          ? undefined
          : () => readFrom(isText(last) ? last.id : Number(last['place']), limit, members);
        const toFound = (row: Row): RecordOf[N] | RecordText =>
          isText(row) ? row : toRecord(table, Object.assign(row, common));
        return { records: read.map(toFound), next };
      },
    );
  };
  return {
    // Without members, no row is a text.
    read: ({ after = start, limit = pageRecordsMax } = {}) =>
      readFrom(after, limit) as MaybePromise<Page<RecordOf[N]>>,
    readJson: ({ after = start, limit = pageRecordsMax }, members) =>
      readFrom(after, limit, members),
    exceeds(count, after = start) {
      const rows = rowsFrom(typeof after, pageParameters(owner !== undefined));
      const text = `SELECT count(*) AS n FROM (SELECT 1 FROM ${rows}) AS found`;
      const values = toPageValues({ owner, after, limit: count + 1 });
      return andThen(sql.read(text, values), ([row]) => Number(row?.['n']) > count);
    },
  };
}

function isText(row: Row | RecordText): row is RecordText {
  return 'json' in row;
}
