/** Statements on SQLite. Each is prepared when it is first used. */

import assert from 'node:assert/strict';
import { type Changes, isArea } from '../changes.ts';
import type { TimeStatement } from '../store.ts';
import { createFindRequest, type RecordDeps } from '../sql/ports.ts';
import {
  type Cells,
  columnsOf,
  isTooLong,
  namesOf,
  type NewRow,
  type Row,
  type Table,
  toBytes,
  toRow,
  toSelecting,
  toShort,
  type Value,
} from '../sql/rows.ts';
import {
  type Key,
  type PageQuery,
  pageBytesMax,
  pageParameters,
  type PageStart,
  type RowPage,
  type Sql,
  toPageValues,
} from '../sql/statements.ts';
import type { Transaction, Write } from '../sql/transaction.ts';
import type { Database, SqliteValue, Statement } from './database.ts';
import { changeOnce, isKept, runOnce } from './requests.ts';
import type { Transactions } from './transactions.ts';

/** Statements inside a transaction of the caller. */
export interface SqliteRows {
  /** Prepares a statement once. `name` identifies the text; without `toText`, it is the text. */
  readonly prepare: (name: string, toText?: () => string) => Statement;
  /** Runs a statement, and counts each row that it returns as changed. */
  readonly run: (...statement: Write) => readonly Row[];
  /** Stores a row, and counts it. Returns the rows of a RETURNING clause. */
  readonly put: (table: Table, row: NewRow, onConflict?: string) => readonly Row[];
}

interface SqliteStatements extends Sql, SqliteRows {
  createFind(key: Key): (value: string | number) => Cells | undefined;
  read(text: string, values: readonly Value[]): readonly Row[];
}

/** Shared by the parts of the driver. */
export interface SqliteContext extends RecordDeps {
  readonly changes: Changes;
  readonly transactions: Transactions;
  readonly sql: SqliteStatements;
}

export function createRows(database: Database, changes: Pick<Changes, 'count'>): SqliteRows {
  const prepared = new Map<string, Statement>();
  const columnNames: Partial<Record<Table, readonly string[]>> = {};
  const prepare: SqliteRows['prepare'] = (name, toText = () => name) => {
    const cached = prepared.get(name);
    if (cached !== undefined) return cached;
    const statement = database.prepare(toPositional(toText()));
    prepared.set(name, statement);
    return statement;
  };
  const count = (table: string, row: Row): void => {
    const owner = (row['post_id'] ?? row['author_id']) as string | null | undefined;
    if (isArea(table)) changes.count(table, String(row['id']), owner);
  };
  return {
    prepare,
    run(table, text, values) {
      const rows = prepare(text).all(...values.map(toSqlite));
      for (const row of rows) count(table, row);
      return rows;
    },
    put(table, row, onConflict = '') {
      const columns = (columnNames[table] ??= namesOf(table));
      const statement = prepare(`INTO ${table} ${onConflict}`, () => {
        const values = columns.map(() => '?').join();
        return `INSERT INTO ${table} (${columnsOf[table]}) VALUES (${values}) ${onConflict}`;
      });
      count(table, row);
      return statement.all(...columns.map((column) => toSqlite(row[column] ?? null)));
    },
  };
}

interface StatementsDeps {
  readonly rows: SqliteRows;
  readonly transactions: Pick<Transactions, 'write'>;
  readonly timed?: TimeStatement | undefined;
}

export function createStatements({ rows, transactions, timed }: StatementsDeps): SqliteStatements {
  const { prepare, put } = rows;
  /** The rows are arrays, which take half of the time of objects. Before Node 22.16: objects. */
  const ofCells = new Map<string, Statement>();
  const prepareCells = (text: string): Statement => {
    const cached = ofCells.get(text);
    if (cached !== undefined) return cached;
    const statement = prepare(`cells: ${text}`, () => text);
    statement.setReturnArrays?.(true);
    ofCells.set(text, statement);
    return statement;
  };
  const measured = <T>(work: () => T): T => {
    const startedAt = performance.now();
    try {
      return work();
    } finally {
      timed?.('read', performance.now() - startedAt);
    }
  };
  const read: SqliteStatements['read'] = (text, values) =>
    measured(() => prepare(text).all(...values.map(toSqlite)));
  return {
    ...rows,
    ...dialect,
    createFind([table, column]) {
      const text = `SELECT ${columnsOf[table]} FROM ${table} WHERE ${column} = $1`;
      return (value) =>
        measured(() => {
          const found = prepareCells(text).get(value);
          return found && toCells(found);
        });
    },
    read,
    createInsert: (table) => (record, once) => {
      const row = toRow(record);
      return transactions.write(() =>
        runOnce(rows, { once, id: String(row['id']) }, () => {
          put(table, row);
          return record;
        }),
      );
    },
    change: (once, statement) => transactions.write(() => changeOnce(rows, once, statement)),
    requests: { find: createFindRequest({ schema: '', read }, isKept) },
    createPages(query, toPage) {
      const readPage = createReadPage(query, prepareCells);
      return (start) => measured(() => toPage(readPage(start), start));
    },
    transact: (once, work) =>
      transactions.write(() => runOnce(rows, { once }, () => act(rows, work()))),
  };
}

function createReadPage(
  { table, owner, toText }: PageQuery,
  prepare: (text: string) => Statement,
): (start: PageStart) => RowPage {
  const at = pageParameters(owner !== undefined);
  // SQLite would plan the statement again for each value of a parameter behind LIMIT, which takes
  // longer than reading a few rows.
  const parameters = { ...at, limit: `${at.limit} + 0` };
  // V8 takes four times as long as Buffer to make a text of bytes that are not ASCII.
  const whole = toText(toBytes(table, owner), parameters);
  /** The statements of short pages, by the exponent of two of their maximum number of rows. */
  const short: string[] = [];
  return (start) => {
    const values = toPageValues(start).map(toSqlite);
    // A page of so many rows, each with texts up to this size, is shorter than a page may be.
    const exponent = Math.ceil(Math.log2(start.limit));
    const textMax = String(pageBytesMax / 2 ** exponent);
    const text = (short[exponent] ??= toText(toShort(table, textMax, owner), parameters));
    const rows = prepare(text)
      .all(...values)
      .map(toCells);
    return rows.some((cells) => isTooLong(table, cells))
      ? readBounded(prepare(whole).iterate(...values))
      : { rows, isCut: false };
  };
}

/** Runs a transaction that is begun. */
export function act<T>({ run }: Pick<SqliteRows, 'run'>, steps: Transaction<T>): T {
  let next = steps.next();
  while (next.done !== true) {
    const step = next.value;
    if (typeof step === 'function') step();
    next = steps.next(typeof step === 'function' ? [] : run(...step));
  }
  return next.value;
}

/** With the condition of an index that has not all rows, if the selection does not imply it. */
const indexOf: Readonly<Record<string, string>> = {
  'comments post_id': 'comments_of_post WHERE',
  'pending_comments post_id': 'pending_comments_of_post WHERE',
  'posts author_id': 'posts_of_author WHERE',
  'posts status': 'posts_of_status WHERE',
  [`posts ${toSelecting('authorId status')}`]:
    'posts_of_author_status WHERE author_id IS NOT NULL AND',
};
const ofPublished = 'posts_of_author_published WHERE';

const ofOne: Sql['ofOne'] = (table, order, { column, owner, by, place, condition, limit }) => {
  const index = indexOf[`${table} ${column}`] ?? ofPublished;
  return `${table} INDEXED BY ${index} ${condition} ${column} = ${owner}
    AND ${by} ${order === 'ASC' ? '>' : '<'} ${place} ORDER BY ${by} ${order} LIMIT ${limit}`;
};

export const dialect = {
  schema: '',
  toId: (text) => text,
  ofOne,
  *insert(table, rows, { where = 'true', onConflict = '' } = {}) {
    const columns = Object.keys(rows[0] ?? {});
    const given = columns.map((column, at) => `$${at + 1} AS ${column}`);
    const text = `INSERT INTO ${table} (${columns.join()}) SELECT ${columns.join()}
      FROM (SELECT ${given.join()}) AS given WHERE ${where} ${onConflict}`;
    const found: Row[] = [];
    for (const row of rows) {
      const values = columns.map((column) => row[column] ?? null);
      found.push(...(yield [table, text, values]));
    }
    return found;
  },
  isAmong: (column, texts) => `${column} IN (SELECT value FROM json_each(${texts}))`,
  // A transaction that writes is the only one.
  forUpdate: '',
  lockFiles: undefined,
  newVersion: '',
} as const satisfies Partial<Sql>;

/**
 * Before Node 24.6 values are bound only to parameters without numbers. Throws for a text that uses
 * one twice or out of order, which would be bound to another value, or to NULL.
 */
function toPositional(text: string): string {
  let used = 0;
  return text.replaceAll(/\$(\d+)/g, (_, number) => {
    assert.equal(Number(number), (used += 1), `The parameters are not in order: ${text}`);
    return '?';
  });
}

function toSqlite(value: Value): SqliteValue {
  return typeof value === 'boolean' ? Number(value) : value;
}

function toCells(row: Row | readonly unknown[]): Cells {
  return (Array.isArray(row) ? row : Object.values(row)) as Cells; // as it was stored
}

/** Reads rows until their texts, which can be bytes, have more characters than a page may. */
function readBounded(found: Iterable<Row>): RowPage {
  const rows: Cells[] = [];
  let length = 0;
  for (const row of found) {
    const cells = toCells(row);
    for (const [at, value] of cells.entries()) {
      if (value instanceof Uint8Array) cells[at] = Buffer.from(value.buffer).toString();
      const cell = cells[at];
      if (typeof cell === 'string') length += cell.length;
    }
    rows.push(cells);
    if (length > pageBytesMax) return { rows, isCut: true };
  }
  return { rows, isCut: false };
}
