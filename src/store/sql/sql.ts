/**
 * What each SQL driver provides for the shared statements. A statement uses its parameters `$1`,
 * `$2`, … once each and in this order.
 */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import { changedLengthMax, tooLongToChange } from '../articles.ts';
import { columnsOf, type NewRow, type Row, type Table, type Value } from './rows.ts';

export interface Sql {
  /** The prefix of table names. */
  readonly schema: string;
  /** An expression for the time of the database in whole milliseconds. */
  readonly now: string;
  /** A parameter behind `LIMIT`. */
  limit(parameter: string): string;
  /** The strings of a JSON array, as rows with the column `value`. */
  itemsOf(parameter: string): string;
  /**
   * What follows `FROM` to read the rows of owners: `$1` is a JSON array of their ids, `$2` the
   * limit. This text and the next force the use of an index: if a few owners have most rows,
   * statistics overestimate those of every owner, and the planner may read the whole table.
   */
  ofEach(rows: Owned): string;
  /** The rows of one owner (`$1`) after a position (`$2`), in this order, at most `$3`. */
  ofOne(rows: Owned, order: Order): string;
  /** Runs a statement that only reads. */
  read(text: string, values: readonly Value[]): MaybePromise<readonly Row[]>;
  /**
   * Runs a statement that writes, as a whole or not at all, and returns the rows of its RETURNING
   * clause.
   */
  write(...statement: Write): Promise<readonly Row[]>;
  /** Reads the first rows of a list, up to `bytesMax` bytes. */
  readPage(query: PageQuery): MaybePromise<RowPage>;
}

export type Write = readonly [table: string, text: string, values: readonly Value[]];

/** A table, and the column that references the owner. */
export type Owned = readonly [
  table: 'authors' | 'comments' | 'posts',
  column: 'id' | 'post_id' | 'author_id',
];
export type Order = 'ASC' | 'DESC';

export interface PageQuery {
  readonly table: Table;
  /** Selects the rows ordered by `place`; in any order if all rows must be read. */
  readonly text: string;
  readonly values: readonly Value[];
  readonly order: Order;
  /** Default: `pageBytesMax`. */
  readonly bytesMax?: number;
}

export interface RowPage {
  readonly rows: readonly Row[];
  /** The limit on bytes was reached, so there may be more rows. */
  readonly isCut: boolean;
}

/** A page ends after this many bytes of text. */
export const pageBytesMax = 1_048_576;
/** Limit for records that must be read at once, in bytes. */
export const batchBytesMax = 4 * pageBytesMax;

/** Returns a function that finds the record whose `column` has a value. */
export function findBy<T>(
  sql: Sql,
  [table, column]: readonly [Table, string],
  toRecord: (row: Row) => T,
): (value: string | number) => MaybePromise<T | undefined> {
  const text = `SELECT ${columnsOf[table]} FROM ${sql.schema}${table} WHERE ${column} = $1`;
  return (value) => andThen(sql.read(text, [value]), ([row]) => row && toRecord(row));
}

export interface Insert {
  readonly table: Table;
  readonly row: NewRow;
  readonly onConflict?: string;
}

export function toInsert({ schema }: Pick<Sql, 'schema'>, insert: Insert): Write {
  const { table, row, onConflict = '' } = insert;
  const columns = columnsOf[table].split(', ');
  const places = columns.map((_, at) => `$${at + 1}`).join(', ');
  const into = `${schema}${table} (${columnsOf[table]})`;
  const text = `INSERT INTO ${into} VALUES (${places}) ${onConflict}`;
  return [table, text, columns.map((column) => row[column] ?? null)];
}

/** Returns a row if the record is stored now, and none if it was there. */
export const unlessThere = 'ON CONFLICT DO NOTHING RETURNING 1';
/** The authors of given accounts are updated at every start (R20). */
export const renewAuthor =
  'ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email';

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

/** For a change of all articles. `columns`: what the driver needs. */
export function allArticles(schema: string, columns: string): PageQuery {
  const text = `SELECT id AS place, ${columns} FROM ${schema}articles ORDER BY id`;
  return { table: 'articles', text, values: [], order: 'ASC', bytesMax: changedLengthMax };
}

/** Returns all rows. Throws `content_too_large` if they exceed the limit. */
export function wholeOf({ rows, isCut }: RowPage): readonly Row[] {
  if (isCut) throw tooLongToChange();
  return rows;
}
