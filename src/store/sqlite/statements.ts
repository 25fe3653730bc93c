/** Statements on SQLite. Each is prepared when it is first used. */

import type { TimeStatement } from '../driver.ts';
import type { RecordDeps } from '../sql/records.ts';
import type { Row, Value } from '../sql/rows.ts';
import {
  type Owned,
  type PageQuery,
  pageBytesMax,
  type RowPage,
  type Sql,
  type Write,
} from '../sql/sql.ts';
import type { Area, Versions } from '../store.ts';
import type { Database, SqliteValue, Statement } from './database.ts';
import type { Writes } from './writes.ts';

export interface SqliteStatements extends Sql {
  read(text: string, values: readonly Value[]): readonly Row[];
  readPage(query: PageQuery): RowPage;
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
    now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    limit: (parameter) => parameter,
    itemsOf: (parameter) => `json_each(${parameter})`,
    ofEach: (rows) => `(SELECT value FROM json_each($1)) AS owner
      CROSS JOIN ${byIndex(rows)} WHERE ${rows[1]} = owner.value LIMIT $2`,
    ofOne: (rows, order) => `${byIndex(rows)} WHERE ${rows[1]} = $1
      AND seq ${order === 'ASC' ? '>' : '<'} $2 ORDER BY seq ${order} LIMIT $3`,
    read: (text, values) => measured(() => ask(text, values)),
    run,
    write: (...statement) => writes.run(() => run(...statement)),
    readPage: ({ text, values, bytesMax = pageBytesMax }) =>
      measured(() => {
        const rows: Row[] = [];
        let bytes = 0;
        for (const row of prepare(text).iterate(...values.map(toSqlite))) {
          rows.push(row);
          for (const name in row) {
            if (typeof row[name] === 'string') bytes += row[name].length;
          }
          if (bytes >= bytesMax) return { rows, isCut: true };
        }
        return { rows, isCut: false };
      }),
  };
}

function isArea(table: string, versions: Versions): table is Area {
  return table in versions;
}

const indexOf = { post_id: 'comments_of_post', author_id: 'posts_of_author' };

/** For a unique column SQLite needs no hint: its statistics say one row per owner. */
function byIndex([table, column]: Owned): string {
  return column === 'id' ? table : `${table} INDEXED BY ${indexOf[column]}`;
}

function toSqlite(value: Value): SqliteValue {
  return typeof value === 'boolean' ? Number(value) : value;
}
