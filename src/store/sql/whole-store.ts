/** The whole store in SQL, for both drivers, which give the transaction. */

import type { MaybePromise } from '../../maybe-promise.ts';
import { checkLimits } from '../file-index.ts';
import type { Ending, FillableStore, RecordOf } from '../whole-store.ts';
import { createFileList, toFileRow, toSums, toTotal } from './files.ts';
import { unlessThere } from './initial.ts';
import { namesOf, type NewRow, type Table, toRecord, toRow } from './rows.ts';
import type { RowPage, Sql } from './statements.ts';
import type { Transaction } from './transaction.ts';

/** What runs inside the transaction. */
export interface WholeSql extends Pick<
  Sql,
  'schema' | 'createFind' | 'createPages' | 'read' | 'change' | 'insert' | 'lockFiles'
> {
  readonly act: <T>(steps: Transaction<T>) => MaybePromise<T>;
}

/** A comment is in one of two tables (R48). */
const otherOf: Readonly<Partial<Record<Table, Table>>> = {
  comments: 'pending_comments',
  pending_comments: 'comments',
};

/** A page is garbage before V8 has to move it: for 500 records the heap grows by 60 MiB more. */
const pageRecords = 50;
/** Before every id. */
const noId = '00000000-0000-0000-0000-000000000000';

export function createWholeStore(sql: WholeSql): FillableStore {
  const { schema } = sql;
  let lastId: string | undefined;
  /** Notes of a comment that its place is not where the order of ids has it, as `approve` does. */
  const withOrder = async (row: NewRow): Promise<NewRow> => {
    const last = `SELECT id FROM ${schema}comments ORDER BY id DESC LIMIT 1`;
    if (lastId === undefined) {
      const [found] = await sql.read(last, []);
      lastId = found === undefined ? noId : String(found['id']);
    }
    const id = String(row['id']);
    const isLater = id > lastId;
    if (isLater) lastId = id;
    return { ...row, was_pending: isLater ? null : true };
  };
  return {
    pages: (table) => readAll(sql, table),
    async add(table, records) {
      const find = sql.createFind([table, 'id']);
      const other = otherOf[table];
      const rows: NewRow[] = [];
      for (const row of records.map(toRow)) {
        rows.push(table === 'comments' ? await withOrder(row) : row);
      }
      // Scalars, because a join may read all posts.
      const where = other
        ? `(SELECT id FROM ${schema}posts WHERE id = given.post_id) IS NOT NULL
          AND (SELECT id FROM ${schema}${other} WHERE id = given.id) IS NULL`
        : 'true';
      // A record that comes twice is inserted once.
      const added = await sql.act(sql.insert(table, rows, { where, ...unlessThere }));
      const inserted = new Set(added.map(({ id }) => String(id)));
      return Promise.all(
        records.map(async ({ id }) => {
          if (inserted.delete(String(id))) return true;
          const cells = await find(id);
          return cells && toRecord[table](cells);
        }),
      );
    },
    async articleCounter() {
      const text = `SELECT value FROM ${schema}counters WHERE name = 'articles'`;
      return Number((await sql.read(text, []))[0]?.['value']);
    },
    files: createFileList(sql),
    end: async (ending) => sql.act(end(sql, ending)),
  };
}

async function* readAll<N extends Table>(
  { schema, createPages }: Pick<WholeSql, 'schema' | 'createPages'>,
  table: N,
): AsyncGenerator<readonly RecordOf[N][]> {
  const isById = table === 'authors' || table === 'accounts' || table === 'posts';
  const place = isById || table === 'articles' ? 'id' : 'seq';
  const read = createPages<RowPage>(
    {
      table,
      order: 'ASC',
      owner: undefined,
      afterType: isById ? 'uuid' : 'bigint',
      toText: (columns, { after, limit }) => `SELECT ${columns}, ${place} AS place
        FROM ${schema}${table} WHERE ${place} > ${after} ORDER BY ${place} LIMIT ${limit}`,
    },
    (page) => page,
  );
  const placeAt = namesOf(table).length;
  let after: string | number = isById ? noId : 0;
  for (;;) {
    const { rows, isCut } = await read({ after, limit: pageRecords });
    const last = rows.at(-1)?.[placeAt];
    yield rows.map(toRecord[table]);
    if (!isCut && rows.length < pageRecords) return;
    after = isById ? String(last) : Number(last);
  }
}

function* end(
  sql: WholeSql,
  { articleCounter, now, files, limits }: Ending,
): Transaction<Ending['files']> {
  const { schema } = sql;
  const count = `UPDATE ${schema}counters SET value = $1 WHERE name = 'articles' AND value < $2`;
  yield ['counters', count, [articleCounter, articleCounter]];
  const missing = `INSERT INTO ${schema}authors (id, name, email, created_at)
    SELECT id, username, email, $1 FROM ${schema}accounts
    WHERE id NOT IN (SELECT id FROM ${schema}authors)`;
  yield ['authors', missing, [now]];
  if (files.length === 0) return [];
  if (sql.lockFiles !== undefined) yield ['', sql.lockFiles, []];
  const onConflict = 'ON CONFLICT DO NOTHING RETURNING disk_name';
  const rows = yield* sql.insert('files', files.map(toFileRow), { onConflict });
  const added = new Set(rows.map((row) => row['disk_name']));
  const [stored] = yield ['', toTotal(schema), []];
  checkLimits(limits, toSums(stored), { files: [], replaced: [] });
  return files.filter(({ temporaryName }) => !added.has(temporaryName));
}
