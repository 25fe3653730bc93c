/** Statements on SQLite. Each is prepared when it is first used. */

import { type Changes, isArea } from '../changes.ts';
import { changedLengthMax } from '../shared.ts';
import type { TimeStatement } from '../store.ts';
import type { RecordDeps } from '../sql/ports.ts';
import {
  columnsOf,
  isShortened,
  namesOf,
  type NewRow,
  type Row,
  type Table,
  toBytes,
  toShort,
  type Value,
} from '../sql/rows.ts';
import {
  type Key,
  type PageQuery,
  pageBytesMax,
  pageParameters,
  type RowPage,
  type Sql,
  toPageValues,
  type Write,
} from '../sql/statements.ts';
import type { Database, SqliteValue, Statement } from './database.ts';
import type { Transactions } from './transactions.ts';

/** Statements inside a transaction of the caller. */
export interface SqliteRows {
  /** Prepares a statement once. The name identifies the text; default: the text. */
  readonly prepare: (name: string, toText?: () => string) => Statement;
  /** Runs a statement, and counts each row that it returns as changed. */
  readonly run: (...statement: Write) => readonly Row[];
  /** Stores a row, and counts it. Returns the rows of a RETURNING clause. */
  readonly put: (table: Table, row: NewRow, onConflict?: string) => readonly Row[];
}

interface SqliteStatements extends Sql, SqliteRows {
  find(key: Key, value: string | number): Row | undefined;
  read(text: string, values: readonly Value[]): readonly Row[];
  readPage<T>(query: PageQuery, toPage: (page: RowPage) => T): T;
  readArticles(columns: string): RowPage;
}

/** Shared by the parts of the driver. */
export interface SqliteContext extends RecordDeps {
  readonly changes: Changes;
  readonly transactions: Transactions;
  readonly sql: SqliteStatements;
}

export function createRows(database: Database, changes: Changes): SqliteRows {
  const prepared = new Map<string, Statement>();
  const prepare: SqliteRows['prepare'] = (name, toText = () => name) => {
    const cached = prepared.get(name);
    if (cached !== undefined) return cached;
    const statement = database.prepare(toText().replaceAll(/\$\d+/g, '?'));
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
      const columns = namesOf(table);
      const toText = (): string =>
        `INSERT INTO ${table} (${columnsOf[table]}) VALUES (${columns.map(() => '?').join()})
          ${onConflict}`;
      count(table, row);
      const values = columns.map((column) => toSqlite(row[column] ?? null));
      return prepare(`INTO ${table} ${onConflict}`, toText).all(...values);
    },
  };
}

interface StatementsDeps {
  readonly rows: SqliteRows;
  readonly transactions: Transactions;
  readonly timed?: TimeStatement | undefined;
}

export function createStatements({ rows, transactions, timed }: StatementsDeps): SqliteStatements {
  const { prepare, run, put } = rows;
  const measured = <T>(work: () => T): T => {
    const startedAt = performance.now();
    try {
      transactions.read();
      return work();
    } finally {
      timed?.('read', performance.now() - startedAt);
    }
  };
  return {
    ...rows,
    schema: '',
    ofOne,
    find([table, column], value) {
      const toText = (): string => `SELECT ${columnsOf[table]} FROM ${table} WHERE ${column} = $1`;
      return measured(() => prepare(`${table} ${column}`, toText).get(value));
    },
    read: (text, values) => measured(() => prepare(text).all(...values.map(toSqlite))),
    insert: (table, row) => transactions.write(() => put(table, row)),
    write: (...statement) => transactions.write(() => run(...statement)),
    readPage(query, toPage) {
      const { name, table, toText, owner, columns, limit } = query;
      const at = pageParameters(owner !== undefined);
      // SQLite would plan the statement again for each value of a parameter behind LIMIT, which
      // takes longer than reading a few rows.
      const parameters = { ...at, limit: `${at.limit} + 0` };
      const values = toPageValues(query).map(toSqlite);
      // A page of so many rows, each with texts up to this size, is shorter than a page may be.
      const rowsMax = 2 ** Math.ceil(Math.log2(limit));
      const textMax = String(pageBytesMax / rowsMax);
      return measured(() => {
        const short = prepare(`${name} ${rowsMax}`, () =>
          toText(toShort(table, textMax, columns), parameters),
        );
        const found = readRows(short, values, ['place', ...columns]);
        if (!found.some((row) => isShortened(table, row))) {
          return toPage({ rows: found, isCut: false });
        }
        // V8 takes four times as long as Buffer to make a text of bytes that are not ASCII.
        const whole = prepare(name, () => toText(toBytes(table), parameters));
        return toPage(readBounded(whole.iterate(...values), pageBytesMax));
      });
    },
    readArticles(columns) {
      const statement = prepare(`SELECT ${columns} FROM articles ORDER BY id`);
      return measured(() => readBounded(statement.iterate(), changedLengthMax));
    },
  };
}

const indexOf: Readonly<Record<string, string>> = {
  post_id: 'comments_of_post',
  author_id: 'posts_of_author',
  status: 'posts_of_status',
};

const ofOne: Sql['ofOne'] = (table, order, { column, owner, place, limit }) =>
  `${table} INDEXED BY ${indexOf[column]} WHERE ${column} = ${owner}
    AND seq ${order === 'ASC' ? '>' : '<'} ${place} ORDER BY seq ${order} LIMIT ${limit}`;

function toSqlite(value: Value): SqliteValue {
  return typeof value === 'boolean' ? Number(value) : value;
}

/** Arrays take half of the time of objects. Before Node 22.16 rows are objects. */
function readRows(
  statement: Statement,
  values: readonly SqliteValue[],
  names: readonly string[],
): readonly Row[] {
  statement.setReturnArrays?.(true);
  return statement.all(...values).map((found) => toRow(found, names));
}

function toRow(found: Row | readonly unknown[], names: readonly string[]): Row {
  const cells: readonly unknown[] = Array.isArray(found) ? found : Object.values(found);
  const row: Record<string, unknown> = {};
  for (let at = 0; at < names.length; at += 1) row[names[at] as string] = cells[at]; // within
  return row;
}

/** Reads rows until their texts, which can be bytes, have more characters than this. */
function readBounded(found: Iterable<Row>, lengthMax: number): RowPage {
  const rows: Row[] = [];
  let length = 0;
  for (const cells of found) {
    const row: Record<string, unknown> = {};
    for (const name in cells) {
      const value = cells[name];
      const kept = value instanceof Uint8Array ? Buffer.from(value.buffer).toString() : value;
      if (typeof kept === 'string') length += kept.length;
      row[name] = kept;
    }
    rows.push(row);
    if (length > lengthMax) return { rows, isCut: true };
  }
  return { rows, isCut: false };
}
