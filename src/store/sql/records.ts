/** Posts, comments, authors and todos in SQL, for both drivers. */

import { append, pageRecordsMax } from '../list.ts';
import { createAccounts } from '../accounts.ts';
import type { Account, Comment, Post, Todo } from '../model.ts';
import type {
  Comments,
  Groups,
  Posts,
  PostTexts,
  Related,
  StoredAccounts,
  Todos,
} from '../store.ts';
import { createList, type Listing } from './lists.ts';
import { columnsOf, toAuthor, toComment, toPost, toTodo, toRow } from './rows.ts';
import { batchBytesMax, findBy, type Owned, type Sql, toInsert } from './sql.ts';
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
    related: createRelated(deps),
    accounts: createAccounts(configured, stored),
    todos: createTodos(deps),
  };
}

const newestPosts: Listing<Post> = { table: 'posts', order: 'DESC', toRecord: toPost };
const oldestComments: Listing<Comment> = { table: 'comments', order: 'ASC', toRecord: toComment };
const ofAuthors: Owned = ['posts', 'author_id'];
const ofPosts: Owned = ['comments', 'post_id'];

function createPosts({ sql, createId, now }: RecordDeps): Posts {
  const posts = `${sql.schema}posts`;
  return {
    all: createList(sql, newestPosts),
    ofAuthor: (id) => createList(sql, newestPosts, [ofAuthors, id]),
    find: findBy(sql, ['posts', 'id'], toPost),
    async create({ title, content, authorId }) {
      const id = createId();
      const post: Post = { id, title, content, status: 'DRAFT', createdAt: now(), authorId };
      await sql.write(...toInsert(sql, { table: 'posts', row: toRow(post) }));
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
      await sql.write(...toInsert(sql, { table: 'todos', row: toRow(todo) }));
      return todo;
    },
  };
}

function createRelated({ sql }: RecordDeps): Related {
  const authorsOf = `SELECT ${columnsOf.authors} FROM ${sql.ofEach(['authors', 'id'])}`;
  return {
    async authors(ids) {
      const rows = await sql.read(authorsOf, [JSON.stringify(ids), ids.length]);
      return new Map(rows.map(toAuthor).map((author) => [author.id, author]));
    },
    commentsOfPosts: readGroups(sql, oldestComments, ofPosts),
    postsOfAuthors: readGroups(sql, newestPosts, ofAuthors),
  };
}

/**
 * Reads the records of each owner: first one page, and all only if a count finds no more than
 * `max`. Undefined if there are more, or too many bytes.
 */
function readGroups<T>(
  sql: Sql,
  { table, order, toRecord }: Listing<T>,
  owned: Owned,
): (ids: readonly string[], max: number) => Promise<Groups<T> | undefined> {
  const found = `FROM ${sql.ofEach(owned)}`;
  // Not sorted by SQLite, which would read all texts to sort them.
  const text = `SELECT seq AS place, ${columnsOf[table]} ${found}`;
  const query = { table, text, order, bytesMax: batchBytesMax };
  const sign = order === 'ASC' ? 1 : -1;
  const count = `SELECT count(*) AS n FROM (SELECT 1 ${found}) AS found`;
  return async (ids, max) => {
    const all = JSON.stringify(ids);
    let { rows, isCut } = await sql.readPage({ ...query, values: [all, pageRecordsMax + 1] });
    if (!isCut && rows.length > pageRecordsMax) {
      const [counted] = await sql.read(count, [all, max + 1]);
      if (Number(counted?.['n']) > max) return undefined;
      ({ rows, isCut } = await sql.readPage({ ...query, values: [all, max + 1] }));
    }
    if (isCut || rows.length > max) return undefined;
    const sorted = rows.toSorted((a, b) => sign * (Number(a['place']) - Number(b['place'])));
    const groups = new Map<string, T[]>();
    for (const row of sorted) append(groups, String(row[owned[1]]), toRecord(row));
    return groups;
  };
}
