/**
 * What both drivers on SQL give to the statements that they share. A text has its parameters as
 * `$1`, `$2`, …, each once and in this order.
 */

import { AppError } from '../../errors.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import { columnsOf, type NewRow, type Row, type Table, type Value } from './rows.ts';

export interface Sql {
  /** What stands before the name of a table. */
  readonly schema: string;
  /** The database's clock, in whole milliseconds. */
  readonly now: string;
  /**
   * The rows of each owner whose id is in a JSON array (`$1`), `$2` of them at most. This text and
   * the next stand behind `FROM`, and read these rows alone by their index. A plan made from
   * statistics may read the whole table: they say that an owner has many rows where a few have all.
   */
  ofEach(rows: Owned): string;
  /** The rows of one owner (`$1`) behind a place (`$2`), in this order, `$3` of them at most. */
  ofOne(rows: Owned, order: Order): string;
  /** The rows of a statement that only reads. */
  read(text: string, values: readonly Value[]): MaybePromise<readonly Row[]>;
  /** How many rows of the table a statement has written: they are kept whole or not at all. */
  write(...statement: Write): Promise<number>;
  /** The first rows of a list, until they have `bytesMax` bytes. */
  readPage(query: PageQuery): MaybePromise<RowPage>;
}

export type Write = readonly [table: Table, text: string, values: readonly Value[]];

/** A table, and the column that says whose its rows are. */
export type Owned = readonly [
  table: 'authors' | 'comments' | 'posts',
  column: 'id' | 'post_id' | 'author_id',
];
export type Order = 'ASC' | 'DESC';

export interface PageQuery {
  readonly table: Table;
  /** Selects the rows in the order of their `place`; in any order where none may be missing. */
  readonly text: string;
  readonly values: readonly Value[];
  readonly order: Order;
  /** `pageBytesMax` where absent. */
  readonly bytesMax?: number;
}

export interface RowPage {
  readonly rows: readonly Row[];
  /** There may be more rows, which would have been too many bytes. */
  readonly isCut: boolean;
}

/** Beyond so many bytes of text a page ends. */
export const pageBytesMax = 1_048_576;
/** Beyond so many bytes records are not read as one. */
export const batchBytesMax = 4 * pageBytesMax;

/** The record whose `column` has this value. */
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

export function toInsert(
  { schema }: Pick<Sql, 'schema'>,
  { table, row, onConflict = '' }: Insert,
): Write {
  const columns = columnsOf[table].split(', ');
  const places = columns.map((_, at) => `$${at + 1}`).join(', ');
  const into = `${schema}${table} (${columnsOf[table]})`;
  const text = `INSERT INTO ${into} VALUES (${places}) ${onConflict}`;
  return [table, text, columns.map((column) => row[column] ?? null)];
}

export const unlessThere = 'ON CONFLICT DO NOTHING';
/** The authors of accounts are written again and again (R20). */
export const renewAuthor =
  'ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email';

/** Moves the counter to the first value after the last one that is free, and gives it (R15). */
export function nextArticleId(schema: string): string {
  const articles = `${schema}articles`;
  const isFree = (id: string): string =>
    `NOT EXISTS (SELECT 1 FROM ${articles} AS other WHERE other.id = ${id})`;
  // The next value; where that is taken, the one after the first id that has none behind it.
  return `UPDATE ${schema}counters SET value = coalesce(
      (SELECT value + 1 WHERE ${isFree('value + 1')}),
      (SELECT id + 1 FROM ${articles} AS taken
        WHERE id > value AND ${isFree('taken.id + 1')} ORDER BY id LIMIT 1)
    ) WHERE name = 'articles' RETURNING value`;
}

/** For a change of all articles; `columns` are what the driver needs of them. */
export function allArticles(schema: string, columns: string): PageQuery {
  const text = `SELECT id AS place, ${columns} FROM ${schema}articles ORDER BY id`;
  return { table: 'articles', text, values: [], order: 'ASC', bytesMax: batchBytesMax };
}

/** All rows, which a change needs at once. Throws `content_too_large` where they are too long. */
export function wholeOf({ rows, isCut }: RowPage): readonly Row[] {
  if (!isCut) return rows;
  throw new AppError('content_too_large', 'All articles together are too long to be patched.');
}
