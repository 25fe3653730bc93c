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

interface SqliteStatements extends Sql {
  find(key: Key, value: string | number): Row | undefined;
  read(text: string, values: readonly Value[]): readonly Row[];
  readPage<T>(query: PageQuery, toPage: (page: RowPage) => T): T;
  readArticles(columns: string): RowPage;
  /** Like `write`, inside a transaction of the caller. */
  run(...statement: Write): readonly Row[];
  /** Stores a row inside a transaction of the caller. Returns the rows of a RETURNING clause. */
  put(table: Table, row: NewRow, onConflict?: string): readonly Row[];
}

/** Shared by the parts of the driver. */
export interface SqliteContext extends RecordDeps {
  readonly database: Database;
  /** Counts each row that a statement puts, or returns as changed. */
  readonly changes: Changes;
  readonly transactions: Transactions;
  readonly sql: SqliteStatements;
}

interface StatementsDeps extends Pick<SqliteContext, 'database' | 'changes' | 'transactions'> {
  readonly timed?: TimeStatement | undefined;
}

export function createStatements(deps: StatementsDeps): SqliteStatements {
  const { database, changes, transactions, timed } = deps;
  const prepared = new Map<string, Statement>();
  /** The name identifies the text. */
  const prepare = (name: string, toText = (): string => name): Statement => {
    const known = prepared.get(name);
    if (known !== undefined) return known;
    const statement = database.prepare(toText().replaceAll(/\$\d+/g, '?'));
    prepared.set(name, statement);
    return statement;
  };
  const ask = (text: string, values: readonly Value[]): readonly Row[] =>
    prepare(text).all(...values.map(toSqlite));
  const measured = <T>(work: () => T): T => {
    const startedAt = performance.now();
    try {
      transactions.read();
      return work();
    } finally {
      timed?.('read', performance.now() - startedAt);
    }
  };
  const run: SqliteStatements['run'] = (table, text, values) => {
    const rows = ask(text, values);
    for (const row of rows) countChange(changes, table, row);
    return rows;
  };
  const put: SqliteStatements['put'] = (table, row, onConflict) => {
    countChange(changes, table, row);
    return ask(...toInsert(table, row, onConflict));
  };
  return {
    schema: '',
    ofOne,
    find([table, column], value) {
      const toText = (): string => `SELECT ${columnsOf[table]} FROM ${table} WHERE ${column} = $1`;
      return measured(() => prepare(`${table} ${column}`, toText).get(value));
    },
    read: (text, values) => measured(() => ask(text, values)),
    run,
    put,
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
        const rows = readRows(short, values, ['place', ...columns]);
        if (!rows.some((row) => isShortened(table, row))) return toPage({ rows, isCut: false });
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

function countChange(changes: Changes, table: string, { id, ...row }: Row): void {
  const owner = (row['post_id'] ?? row['author_id'] ?? undefined) as string | undefined;
  if (isArea(table)) changes.count(table, String(id), owner);
}

function toInsert(table: Table, row: NewRow, onConflict = ''): readonly [string, readonly Value[]] {
  const columns = namesOf(table);
  const places = columns.map(() => '?').join(', ');
  const text = `INSERT INTO ${table} (${columnsOf[table]}) VALUES (${places}) ${onConflict}`;
  return [text, columns.map((column) => row[column] ?? null)];
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
