/** Posts, comments, authors, todos, accounts and the index of files in SQL, for both drivers. */

import { createAccounts } from '../drivers.ts';
import type { Account, Comment, Post, Todo } from '../model.ts';
import type { Comments, PostMembers, Posts, StoredAccounts, TodoMembers, Todos } from '../store.ts';
import { createList, findBy, type Listing, type Owned, type Sql } from './sql.ts';
import {
  escapeText,
  type Table,
  toAccount,
  toAuthor,
  toComment,
  toFile,
  toPerson,
  toPost,
  toRow,
  toTodo,
  type Value,
} from './rows.ts';
import { andThen } from '../../maybe-promise.ts';
import type { DurableFileIndex } from '../file-index.ts';

export interface RecordDeps {
  readonly sql: Sql;
  readonly createId: () => string;
  /** The present local date-time, as records store it. */
  readonly now: () => string;
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
    posts: createPosts(deps),
    authors: { find: findBy(sql, ['authors', 'id'], toAuthor) },
    accounts: createAccounts(configured, stored),
    todos: createTodos(deps),
  };
}

const newestPosts: Listing<Post> = { table: 'posts', order: 'DESC', toRecord: toPost };
const oldestComments: Listing<Comment> = { table: 'comments', order: 'ASC', toRecord: toComment };
const ofAuthors: Owned = ['posts', 'author_id'];
const ofStatuses: Owned = ['posts', 'status'];
const ofPosts: Owned = ['comments', 'post_id'];

/** The methods that are the same in both drivers. */
export function createPosts({ sql, createId, now }: RecordDeps): Posts {
  return {
    all: createList(sql, newestPosts),
    ofAuthor: (id) => createList(sql, newestPosts, [ofAuthors, id]),
    ofStatus: (status) => createList(sql, newestPosts, [ofStatuses, status]),
    find: findBy(sql, ['posts', 'id'], toPost),
    async create({ title, content, authorId }) {
      const id = createId();
      const post: Post = { id, title, content, status: 'DRAFT', createdAt: now(), authorId };
      await sql.insert('posts', toRow(post));
      return post;
    },
    // Comments are deleted by the foreign key.
    ...createChanges(sql, 'posts', ['title', 'content', 'status']),
  };
}

/** The methods that are the same in both drivers. */
export function createComments({ sql }: RecordDeps): Pick<Comments, 'find' | 'remove' | 'ofPost'> {
  const { remove } = createChanges(sql, 'comments', []);
  return {
    remove: (id) => remove(id),
    find: findBy(sql, ['comments', 'id'], toComment),
    ofPost: (id) => createList(sql, oldestComments, [ofPosts, id]),
  };
}

function createTodos({ sql, createId }: RecordDeps): Todos {
  return {
    all: createList(sql, { table: 'todos', order: 'ASC', toRecord: toTodo }),
    find: findBy(sql, ['todos', 'id'], toTodo),
    async create({ title, completed }) {
      const todo: Todo = { id: createId(), title, completed };
      await sql.insert('todos', toRow(todo));
      return todo;
    },
    ...createChanges(sql, 'todos', ['title', 'completed']),
  };
}

/**
 * Changes the given members of a record, or removes it. The condition on its `columns` is part of
 * the statement that writes, so that no change can come between.
 */
function createChanges(sql: Sql, table: Table, columns: readonly string[]) {
  type Members = Partial<PostMembers & TodoMembers>;
  const valuesOf = (members: Members): readonly Value[] => {
    const row = toRow(members);
    return columns.map((column) => row[column] ?? null);
  };
  const write = async (
    text: string,
    [id, values, expected]: readonly [string, readonly Value[], Members | undefined],
  ): Promise<boolean> => {
    const at = values.length + 1;
    const conditions = expected && columns.map((name, n) => ` AND ${name} = $${at + 1 + n}`);
    const all = [...values, id, ...(expected ? valuesOf(expected) : [])];
    const where = `WHERE id = $${at}${conditions?.join('') ?? ''} RETURNING 1`;
    return (await sql.write(table, `${text} ${where}`, all)).length === 1;
  };
  const changes = columns.map((column, n) => `${column} = coalesce($${n + 1}, ${column})`);
  const update = `UPDATE ${sql.schema}${table} SET ${changes.join(', ')}`;
  return {
    update: (id: string, change: Members, expected?: Members) =>
      write(update, [id, valuesOf(change), expected]),
    remove: (id: string, expected?: Members) =>
      write(`DELETE FROM ${sql.schema}${table}`, [id, [], expected]),
  };
}

/**
 * Stored accounts, for the server that reads them and the command that changes them. `add` also
 * writes the author, in one transaction, which each driver does in its own way.
 */
export function createStoredAccounts(sql: Sql, add: StoredAccounts['add']): StoredAccounts {
  const accounts = `${sql.schema}accounts`;
  const find = findBy(sql, ['accounts', 'username'], toAccount);
  const change = async (text: string, values: readonly string[]): Promise<boolean> =>
    (await sql.write('accounts', `${text} RETURNING 1`, values)).length === 1;
  return {
    find: (username) => find(escapeText(username)),
    list() {
      const text = `SELECT username, id, email, roles FROM ${accounts} ORDER BY username`;
      return andThen(sql.read(text, []), (rows) => rows.map(toPerson));
    },
    add,
    changePassword(username, passwordHash) {
      const text = `UPDATE ${accounts} SET password_hash = $1 WHERE username = $2`;
      return change(text, [passwordHash, escapeText(username)]);
    },
    remove: (username) =>
      change(`DELETE FROM ${accounts} WHERE username = $1`, [escapeText(username)]),
  };
}

/** The methods of the index of files that are the same; `seq` orders by the first storage (R2). */
export function createFileStatements(
  sql: Sql,
): Pick<DurableFileIndex, 'list' | 'remove' | 'folderId'> {
  const { schema } = sql;
  const list = `SELECT stored_name, disk_name, size FROM ${schema}files`;
  return {
    list: (storedName) =>
      andThen(
        storedName === undefined
          ? sql.read(`${list} ORDER BY seq`, [])
          : sql.read(`${list} WHERE stored_name = $1`, [escapeText(storedName)]),
        (rows) => rows.map(toFile),
      ),
    async remove({ temporaryName }) {
      const text = `DELETE FROM ${schema}files WHERE disk_name = $1`;
      await sql.write('files', text, [temporaryName]);
    },
    async folderId(claimed) {
      const text = `INSERT INTO ${schema}upload_folder (id) VALUES ($1) ON CONFLICT DO NOTHING`;
      if (claimed !== undefined) await sql.write('upload_folder', text, [claimed]);
      const [row] = await sql.read(`SELECT id FROM ${schema}upload_folder`, []);
      return row && String(row['id']);
    },
  };
}
