/** Posts, comments, authors and todos in SQL, for both drivers. */

import { createAccounts } from '../accounts.ts';
import type { Account, Comment, Post, Todo } from '../model.ts';
import type { Comments, Posts, PostTexts, StoredAccounts, Todos } from '../store.ts';
import { createList, type Listing } from './lists.ts';
import { toAuthor, toComment, toPost, toTodo, toRow } from './rows.ts';
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
const ofPosts: Owned = ['comments', 'post_id'];

/** The methods that are the same in both drivers. */
export function createPosts({ sql, createId, now }: RecordDeps): Posts {
  const posts = `${sql.schema}posts`;
  return {
    all: createList(sql, newestPosts),
    ofAuthor: (id) => createList(sql, newestPosts, [ofAuthors, id]),
    find: findBy(sql, ['posts', 'id'], toPost),
    async create({ title, content, authorId }) {
      const id = createId();
      const post: Post = { id, title, content, status: 'DRAFT', createdAt: now(), authorId };
      await sql.insert('posts', toRow(post));
      return post;
    },
    async update(id, change, expected) {
      const [condition, texts] = asExpected(expected, 4);
      const text = `UPDATE ${posts} SET title = $1, content = $2 WHERE id = $3${condition}
        RETURNING 1`;
      return (await sql.write('posts', text, [...toTexts(change), id, ...texts])).length === 1;
    },
    async remove(id, expected) {
      // Comments are deleted by the foreign key.
      const [condition, texts] = asExpected(expected, 2);
      const text = `DELETE FROM ${posts} WHERE id = $1${condition} RETURNING 1`;
      return (await sql.write('posts', text, [id, ...texts])).length === 1;
    },
  };
}

function toTexts({ title, content }: PostTexts): readonly string[] {
  return [escapeText(title), escapeText(content)];
}

/** The condition is part of the statement that writes, so that no change can come between. */
function asExpected(
  texts: PostTexts | undefined,
  parameter: number,
): readonly [condition: string, texts: readonly string[]] {
  if (texts === undefined) return ['', []];
  return [` AND title = $${parameter} AND content = $${parameter + 1}`, toTexts(texts)];
}

/** The methods that are the same in both drivers. */
export function createComments({ sql }: RecordDeps): Pick<Comments, 'find' | 'ofPost'> {
  return {
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
  };
}
