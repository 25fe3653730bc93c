/**
 * What each SQL driver provides for the shared statements. A statement uses its parameters `$1`,
 * `$2`, … once each and in this order. What is used more than once is created once: a driver can
 * then prepare it.
 */

import type { MaybePromise } from '../../maybe-promise.ts';
import type { Listed, Order } from '../shared.ts';
import type { Changed, Once, Repeated, Requests } from '../store.ts';
import type { Cells, NewRow, Row, Table, Value } from './rows.ts';
import type { Transaction, Write } from './transaction.ts';

export interface Sql {
  /** The prefix of table names. */
  readonly schema: string;
  /** The id that an expression has as a text. */
  readonly toId: (text: string) => string;
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
   * Runs a statement that writes, as a whole or not at all, once under a key. Returns false, and
   * keeps no key, if its RETURNING clause returns no row. It returns the ids of the changed records
   * and of their owners, by which SQLite counts changes.
   */
  change(once: Once | undefined, statement: Write): Promise<Changed>;
  readonly requests: Requests;
  /**
   * Runs a transaction, once under a key. Its value is undefined if it stored nothing: then no key
   * is kept. It may run again if it could not be committed.
   */
  readonly transact: <T>(
    once: Once | undefined,
    work: () => Transaction<T>,
  ) => Promise<T | Repeated>;
  /** Inserts rows that have the same columns, in their order. Returns the rows of RETURNING. */
  insert(
    table: string,
    rows: readonly NewRow[],
    options?: InsertOptions,
  ): Transaction<readonly Row[]>;
  /** True for the rows whose column is in a JSON array of texts. */
  isAmong(column: string, texts: string): string;
  /** What locks the rows of a SELECT until the commit, if others write meanwhile. */
  readonly forUpdate: '' | ' FOR UPDATE';
  /** Lets one transaction at a time commit files; undefined if that is so in any case. */
  readonly lockFiles: string | undefined;
  /** Gives an article that is changed another version, where older builds compare them. */
  readonly newVersion: '' | ', version = DEFAULT';
}

export interface InsertOptions {
  /** The condition on a row, which has the name `given`. */
  readonly where?: string;
  /** `ON CONFLICT … RETURNING …` */
  readonly onConflict?: string;
}

export type Key = readonly [table: Table, column: 'id' | 'username'];

/** The pages of a list. */
export interface PageQuery {
  readonly table: Table;
  readonly order: Order;
  /** The column whose value selects the rows; undefined: all rows. */
  readonly owner: string | undefined;
  /** A position is a number or a text, and an id is a UUID. */
  readonly afterType: 'bigint' | 'text' | 'uuid';
  /** Selects these columns, then `place`, the position, with these expressions for its values. */
  readonly toText: (columns: string, values: PageExpressions) => string;
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

/** `by`: the expression of positions. `place`: one for the position. `condition`: of the index. */
type OwnedPosition = Omit<PageExpressions, 'after'> &
  Readonly<Record<'column' | 'by' | 'place' | 'condition', string>>;

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
  readonly rows: readonly Cells[];
  /** True if the page ended at its limit of bytes: there may be more rows. */
  readonly isCut: boolean;
}

/** A page ends after this many bytes of text. */
export const pageBytesMax = 1_048_576;
