/** Statements on SQLite. Each is prepared when it is first used. */

import { changedLengthMax } from '../articles.ts';
import type { TimeStatement } from '../driver.ts';
import type { RecordDeps } from '../sql/records.ts';
import { columnsOf, type Row, type Value } from '../sql/rows.ts';
import {
  type Owned,
  type PageQuery,
  pageBytesMax,
  pageParameters,
  type RowPage,
  type Sql,
  toInsert,
  toPageValues,
  type Write,
} from '../sql/sql.ts';
import type { Area, Versions } from '../store.ts';
import type { Database, SqliteValue, Statement } from './database.ts';
import type { Writes } from './writes.ts';

export interface SqliteStatements extends Sql {
  read(text: string, values: readonly Value[]): readonly Row[];
  readPage<T>(query: PageQuery, toPage: (page: RowPage) => T): T;
  readArticles(columns: string): RowPage;
  /** Like `write`, inside a transaction of the caller. */
  run(...statement: Write): readonly Row[];
}

/** Shared by the parts of the driver. */
export interface SqliteContext extends RecordDeps {
  readonly database: Database;
  /** Each statement that writes to a table of these increments its number. */
  readonly versions: Versions;
  readonly writes: Writes;
  readonly sql: SqliteStatements;
}

export interface StatementsDeps extends Pick<SqliteContext, 'database' | 'versions' | 'writes'> {
  readonly timed?: TimeStatement | undefined;
}

export function createStatements({
  database,
  versions,
  writes,
  timed,
}: StatementsDeps): SqliteStatements {
  const prepared = new Map<string, Statement>();
  const prepare = (text: string): Statement => {
    const known = prepared.get(text);
    if (known !== undefined) return known;
    const statement = database.prepare(text.replaceAll(/\$\d+/g, '?'));
    prepared.set(text, statement);
    return statement;
  };
  const pages = new Map<string, Statement>();
  const preparePage = (name: string, toText: () => string): Statement => {
    const statement = pages.get(name) ?? prepare(toText());
    pages.set(name, statement);
    return statement;
  };
  const ask = (text: string, values: readonly Value[]): readonly Row[] =>
    prepare(text).all(...values.map(toSqlite));
  const measured = <T>(work: () => T): T => {
    const startedAt = performance.now();
    try {
      return work();
    } finally {
      timed?.('read', performance.now() - startedAt);
    }
  };
  const run: SqliteStatements['run'] = (table, text, values) => {
    if (isArea(table, versions)) versions[table] += 1;
    return ask(text, values);
  };
  return {
    schema: '',
    ofOne: (rows, order, { owner, place, limit }) => `${byIndex(rows)} WHERE ${rows[1]} = ${owner}
      AND seq ${order === 'ASC' ? '>' : '<'} ${place} ORDER BY seq ${order} LIMIT ${limit}`,
    find([table, column], value) {
      const text = `SELECT ${columnsOf[table]} FROM ${table} WHERE ${column} = $1`;
      return measured(() => ask(text, [value])[0]);
    },
    read: (text, values) => measured(() => ask(text, values)),
    run,
    insert: (table, row) => writes.run(() => run(...toInsert({ schema: '' }, { table, row }))),
    write: (...statement) => writes.run(() => run(...statement)),
    readPage(query, toPage) {
      const { name, table, toText, owner } = query;
      const toTextOf = (): string => toText(columnsOf[table], pageParameters(owner !== undefined));
      const statement = preparePage(name, toTextOf);
      const columns = `place, ${columnsOf[table]}`;
      const read = { columns, values: toPageValues(query), bytesMax: pageBytesMax };
      return measured(() => toPage(readBounded(statement, read)));
    },
    readArticles(columns) {
      const statement = prepare(`SELECT ${columns} FROM articles ORDER BY id`);
      return measured(() =>
        readBounded(statement, { columns, values: [], bytesMax: changedLengthMax }),
      );
    },
  };
}

function isArea(table: string, versions: Versions): table is Area {
  return table in versions;
}

const indexOf = {
  post_id: 'comments_of_post',
  author_id: 'posts_of_author',
  status: 'posts_of_status',
};

function byIndex([table, column]: Owned): string {
  return `${table} INDEXED BY ${indexOf[column]}`;
}

function toSqlite(value: Value): SqliteValue {
  return typeof value === 'boolean' ? Number(value) : value;
}

interface BoundedRead {
  /** The names of the columns. */
  readonly columns: string;
  readonly values: readonly Value[];
  readonly bytesMax: number;
}

function readBounded(statement: Statement, { columns, values, bytesMax }: BoundedRead): RowPage {
  const names = columns.split(', ');
  // Arrays take two thirds of the time of objects. Before Node 22.16 there are only objects.
  statement.setReturnArrays?.(true);
  const rows: Row[] = [];
  let bytes = 0;
  for (const found of statement.iterate(...values.map(toSqlite))) {
    const cells: readonly unknown[] = Array.isArray(found) ? found : Object.values(found);
    const row: Record<string, unknown> = {};
    for (let at = 0; at < names.length; at += 1) {
      const cell = cells[at];
      row[names[at] as string] = cell; // within its length
      if (typeof cell === 'string') bytes += cell.length;
    }
    rows.push(row);
    if (bytes >= bytesMax) return { rows, isCut: true };
  }
  return { rows, isCut: false };
}
