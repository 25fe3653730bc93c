/**
 * What each SQL driver provides for the shared statements. A statement uses its parameters `$1`,
 * `$2`, … once each and in this order. What is used more than once is created once: a driver can
 * then prepare it.
 */

import type { MaybePromise } from '../../maybe-promise.ts';
import { type Listed, type Order, tooLongToChange } from '../shared.ts';
import type { Changed, Once, RecordText, Repeated, Requests } from '../store.ts';
import type { Cells, Row, Table, Value } from './rows.ts';

export interface Sql {
  /** The prefix of table names. */
  readonly schema: string;
  /**
   * What follows `FROM` to read the rows of one owner after a position, in this order. Forces the
   * use of an index: if a few owners have most rows, statistics overestimate those of every owner,
   * and the planner may read the whole table.
   */
  ofOne(table: Table, order: Order, at: OwnedPosition): string;
  /** Returns a function that reads the row whose column, which is unique, has a value. */
  createFind(key: Key): (value: string | number) => MaybePromise<Cells | undefined>;
  /** Returns a function that reads pages of a list. A page ends after a mebibyte of text. */
  createPages<T>(
    query: PageQuery,
    toPage: (rows: RowPage, start: PageStart) => T,
  ): (start: PageStart) => MaybePromise<T>;
  /** Returns a function that stores a new record, once under a key (R40), and returns it. */
  createInsert(table: Listed): <T extends object>(record: T, once?: Once) => Promise<T | Repeated>;
  /** Runs a statement that only reads. */
  read(text: string, values: readonly Value[]): MaybePromise<readonly Row[]>;
  /**
   * Runs a statement that writes, as a whole or not at all, and returns the rows of its RETURNING
   * clause: the ids of the changed records and of their owners, by which SQLite counts changes.
   */
  write(...statement: Write): Promise<readonly Row[]>;
  /** As `write`, once under a key. Returns false, and keeps no key, if no row is returned. */
  writeOnce(once: Once, statement: Write): Promise<Changed>;
  readonly requests: Requests;
  /**
   * Reads these columns of all articles, up to `changedLengthMax`, for a change of all. `askedAt`:
   * when the change was asked for, if its time is limited.
   */
  readArticles(columns: string, askedAt?: number): MaybePromise<RowPage>;
}

export type Key = readonly [table: Table, column: 'id' | 'username'];
/** `askedAt`: as in `ChangeOptions`. */
export type Write = readonly [
  table: string,
  text: string,
  values: readonly Value[],
  askedAt?: number | undefined,
];

/** The pages of a list. */
export interface PageQuery {
  readonly table: Table;
  readonly order: Order;
  /** The column whose value selects the rows; undefined: all rows. */
  readonly owner: string | undefined;
  /** `after` is the id of a record, not a position. */
  readonly isAfterId: boolean;
  /** Selects these columns, then `place`, the position, with these expressions for its values. */
  readonly toText: (columns: string, values: PageExpressions) => string;
  /** A driver may return rows as JSON with these members. */
  readonly members: readonly string[] | undefined;
}

export interface PageStart {
  /** The value that selects the rows. */
  readonly owner?: string | undefined;
  /** The position, or the id of the record, after which the page begins. */
  readonly after: number | string;
  /** Maximum number of rows. */
  readonly limit: number;
}

/** The SQL expressions of the values of a page start. */
export interface PageExpressions {
  readonly owner: string;
  readonly after: string;
  readonly limit: string;
}

/** `place`: an expression for the position. */
type OwnedPosition = Omit<PageExpressions, 'after'> & Readonly<Record<'column' | 'place', string>>;

/** The parameters of a page. */
export function pageParameters(isOwned: boolean): PageExpressions {
  return isOwned
    ? { owner: '$1', after: '$2', limit: '$3' }
    : { owner: '', after: '$1', limit: '$2' };
}

/** The values of these parameters. */
export function toPageValues({ owner, after, limit }: PageStart): readonly Value[] {
  return owner === undefined ? [after, limit] : [owner, after, limit];
}

export interface RowPage {
  readonly rows: readonly (Cells | RecordText)[];
  /** True if the page ended at its limit of bytes: there may be more rows. */
  readonly isCut: boolean;
}

/** A page ends after this many bytes of text. */
export const pageBytesMax = 1_048_576;

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

/** Returns the rows of all articles. Throws `content_too_large` if the page was cut. */
export function requireWhole({ rows, isCut }: RowPage): readonly Cells[] {
  if (isCut) throw tooLongToChange();
  return rows as readonly Cells[]; // articles are not read as JSON with members
}
