/** Posts, comments, authors and todos in SQL, for both drivers. */

import { createAccounts } from '../accounts.ts';
import type { Account, Comment, Post, Todo } from '../model.ts';
import type { Comments, PostMembers, Posts, StoredAccounts, TodoMembers, Todos } from '../store.ts';
import { createList, type Listing } from './lists.ts';
import { type NewRow, toAuthor, toComment, toPost, toRow, toTodo, type Value } from './rows.ts';
import { findBy, type Owned, type Sql } from './sql.ts';
import { escapeText } from './text-escape.ts';

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
  const posts = `${sql.schema}posts`;
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
    async update(id, { title, content, status }, expected) {
      const [condition, values] = asExpected(expected && toValues(expected), 5);
      const text = `UPDATE ${posts} SET title = coalesce($1, title),
        content = coalesce($2, content), status = coalesce($3, status)
        WHERE id = $4${condition} RETURNING 1`;
      const changed = [toText(title), toText(content), status ?? null, id, ...values];
      return (await sql.write('posts', text, changed)).length === 1;
    },
    async remove(id, expected) {
      // Comments are deleted by the foreign key.
      const [condition, values] = asExpected(expected && toValues(expected), 2);
      const text = `DELETE FROM ${posts} WHERE id = $1${condition} RETURNING 1`;
      return (await sql.write('posts', text, [id, ...values])).length === 1;
    },
  };
}

function toText(text: string | undefined): string | null {
  return text === undefined ? null : escapeText(text);
}

function toValues({ title, content, status }: PostMembers): NewRow {
  return { title: escapeText(title), content: escapeText(content), status };
}

/** The condition is part of the statement that writes, so that no change can come between. */
function asExpected(
  row: NewRow | undefined,
  parameter: number,
): readonly [condition: string, values: readonly Value[]] {
  const columns = Object.keys(row ?? {});
  const conditions = columns.map((column, at) => ` AND ${column} = $${parameter + at}`);
  return [conditions.join(''), Object.values(row ?? {})];
}

/** The methods that are the same in both drivers. */
export function createComments({ sql }: RecordDeps): Pick<Comments, 'find' | 'remove' | 'ofPost'> {
  const text = `DELETE FROM ${sql.schema}comments WHERE id = $1 RETURNING 1`;
  return {
    remove: async (id) => (await sql.write('comments', text, [id])).length === 1,
    find: findBy(sql, ['comments', 'id'], toComment),
    ofPost: (id) => createList(sql, oldestComments, [ofPosts, id]),
  };
}

function toTodoValues({ title, completed }: TodoMembers): NewRow {
  return { title: escapeText(title), completed };
}

function createTodos({ sql, createId }: RecordDeps): Todos {
  const todos = `${sql.schema}todos`;
  return {
    all: createList(sql, { table: 'todos', order: 'ASC', toRecord: toTodo }),
    find: findBy(sql, ['todos', 'id'], toTodo),
    async create({ title, completed }) {
      const todo: Todo = { id: createId(), title, completed };
      await sql.insert('todos', toRow(todo));
      return todo;
    },
    async update(id, { title, completed }, expected) {
      const [condition, values] = asExpected(expected && toTodoValues(expected), 4);
      const text = `UPDATE ${todos} SET title = coalesce($1, title),
        completed = coalesce($2, completed) WHERE id = $3${condition} RETURNING 1`;
      const changed = [toText(title), completed ?? null, id, ...values];
      return (await sql.write('todos', text, changed)).length === 1;
    },
    async remove(id, expected) {
      const [condition, values] = asExpected(expected && toTodoValues(expected), 2);
      const text = `DELETE FROM ${todos} WHERE id = $1${condition} RETURNING 1`;
      return (await sql.write('todos', text, [id, ...values])).length === 1;
    },
  };
}
