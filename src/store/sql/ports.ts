/** Records, accounts and the index of files in SQL, for both drivers. */

import {
  createAccounts,
  toPosts,
  toTodos,
  type RecordOf,
  kinds,
  type Table as RecordTable,
} from '../shared.ts';
import type { Account } from '../model.ts';
import type { Changed, ChangeOptions, DriverOptions, Requests, StoredAccounts } from '../store.ts';
import { createFind, createList } from './lists.ts';
import type { Key, Sql, Write } from './statements.ts';
import {
  escapeText,
  toCells,
  toColumn,
  toFile,
  toFirstWrite,
  toRecord,
  toRow,
  type Value,
} from './rows.ts';
import { type Once, toRepeated } from '../once.ts';
import { andThen } from '../../maybe-promise.ts';
import type { DurableFileIndex } from '../file-index.ts';

export interface RecordDeps extends Pick<DriverOptions, 'createId' | 'now'> {
  readonly sql: Sql;
}

/** The ports that are the same in both drivers. `configured`: the accounts of this start (R20). */
export function createPorts(
  deps: RecordDeps,
  configured: readonly Account[],
  stored: StoredAccounts,
) {
  const { sql } = deps;
  return {
    keepsObjects: false,
    posts: toPosts(createTable(sql, 'posts'), deps),
    authors: { find: createFind(sql, ['authors', 'id']) },
    accounts: createAccounts(configured, stored),
    todos: toTodos(createTable(sql, 'todos'), deps),
    requests: sql.requests,
  };
}

/** The comments of a post are deleted by the foreign key. */
export function createTable<N extends 'posts' | 'comments' | 'todos'>(
  sql: Sql,
  name: N,
): RecordTable<RecordOf[N]> {
  return {
    find: createFind(sql, [name, 'id']),
    list: (list) => createList(sql, name, list),
    add: sql.createInsert(name),
    ...createChanges(sql, [name, 'id'], kinds[name]),
  };
}

/**
 * Changes the given members of a record, or removes it. The condition on its `columns` is part of
 * the statement that writes, so that no change can come between.
 */
function createChanges(
  sql: Sql,
  [table, key]: Key,
  { changing: columns, owner }: { readonly changing: readonly string[]; readonly owner?: string },
) {
  const returned = owner === undefined ? key : `${key}, ${toColumn(owner)}`;
  const valuesOf = (members: object): readonly Value[] => {
    const row = toRow(members);
    return columns.map((column) => row[column] ?? null);
  };
  const write = (
    text: string,
    [id, values, { expected, once, askedAt }]: readonly [
      string,
      readonly Value[],
      ChangeOptions<object>,
    ],
  ): Promise<Changed> => {
    const at = values.length + 1;
    const conditions = expected && columns.map((name, n) => ` AND ${name} = $${at + 1 + n}`);
    const all = [...values, escapeText(id), ...(expected ? valuesOf(expected) : [])];
    const where = `WHERE ${key} = $${at}${conditions?.join('') ?? ''} RETURNING ${returned}`;
    const statement = [table, `${text} ${where}`, all, askedAt] as const;
    return writeMaybeOnce(sql, once, statement);
  };
  const changes = columns.map((column, n) => `${column} = coalesce($${n + 1}, ${column})`);
  const update = `UPDATE ${sql.schema}${table} SET ${changes.join(', ')}`;
  return {
    update: (id: string, change: object, options: ChangeOptions<object> = {}) =>
      write(update, [id, valuesOf(change), options]),
    remove: (id: string, options: ChangeOptions<object> = {}) =>
      write(`DELETE FROM ${sql.schema}${table}`, [id, [], options]),
  };
}

/** Runs a statement, once under its key; false if it returns no row. */
async function writeMaybeOnce(
  sql: Sql,
  once: Once | undefined,
  statement: Write,
): Promise<Changed> {
  return once ? sql.writeOnce(once, statement) : (await sql.write(...statement)).length === 1;
}

/**
 * Stored accounts, for the server that reads them and the command that changes them. `add` also
 * writes the author, in one transaction, which each driver does in its own way.
 */
export function createStoredAccounts(sql: Sql, add: StoredAccounts['add']): StoredAccounts {
  const key = ['accounts', 'username'] as const;
  const find = createFind(sql, key);
  const { update, remove } = createChanges(sql, key, { changing: ['password_hash'] });
  return {
    find: (username) => find(escapeText(username)),
    list() {
      const text = `SELECT username, id, email, roles FROM ${sql.schema}accounts ORDER BY username`;
      return andThen(sql.read(text, []), (rows) =>
        rows.map((row) => {
          const { username, id, email, roles } = toRecord.accounts(toCells('accounts', row));
          return { username, id, email, roles };
        }),
      );
    },
    add,
    changePassword: async (username, passwordHash) =>
      (await update(username, { passwordHash })) === true,
    remove: async (username) => (await remove(username)) === true,
  };
}

/** The lists of the index of files; `seq` orders by the first storage (R2). */
export function createFileList(
  sql: Pick<Sql, 'schema' | 'read' | 'write'>,
): Pick<DurableFileIndex, 'list' | 'page' | 'folderId'> {
  const { schema } = sql;
  const list = `SELECT seq, stored_name, disk_name, size FROM ${schema}files`;
  return {
    list: (storedName) =>
      andThen(
        storedName === undefined
          ? sql.read(`${list} ORDER BY seq`, [])
          : sql.read(`${list} WHERE stored_name = $1`, [escapeText(storedName)]),
        (rows) => rows.map(toFile),
      ),
    page: (after, limit) =>
      andThen(sql.read(`${list} WHERE seq > $1 ORDER BY seq LIMIT $2`, [after, limit]), (rows) =>
        rows.map(toFile),
      ),
    async folderId(claimed) {
      const text = `INSERT INTO ${schema}upload_folder (id) VALUES ($1) ON CONFLICT DO NOTHING`;
      if (claimed !== undefined) await sql.write('upload_folder', text, [claimed]);
      const [row] = await sql.read(`SELECT id FROM ${schema}upload_folder`, []);
      return row && String(row['id']);
    },
  };
}

/** The methods of the index of files that are the same. */
export function createFileStatements(sql: Sql): Omit<DurableFileIndex, 'commit'> {
  const text = `DELETE FROM ${sql.schema}files WHERE disk_name = $1 RETURNING 1`;
  return {
    ...createFileList(sql),
    remove: ({ temporaryName }, once) =>
      writeMaybeOnce(sql, once, ['files', text, [temporaryName]]),
  };
}

/**
 * Finds a write that was done under a key, or else the first after it of the same request, which
 * tells only whether that is another one. `isKept`: the condition that the key is valid still.
 */
export function createFindRequest(
  { schema, read }: Pick<Sql, 'schema' | 'read'>,
  isKept: string,
): Requests['find'] {
  // A place follows its key after a dot, and the dot is followed by the slash.
  const text = `SELECT key, print, result FROM ${schema}requests
    WHERE key >= $1 AND key < $2 AND ${isKept} ORDER BY key LIMIT 1`;
  return ({ key, fingerprint }) =>
    andThen(read(text, [key, `${key}/`]), ([row]) => {
      const repeated = row && toRepeated(toFirstWrite(row), fingerprint);
      return row?.['key'] === key ? repeated : undefined;
    });
}
