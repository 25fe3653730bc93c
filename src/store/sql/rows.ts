/**
 * Rows ↔ records, for both drivers on SQL, which have the same tables and columns. Texts that a
 * person chose are escaped in rows.
 */

import type { InitialData } from '../store.ts';
import type { Account, Article, Author, Comment, Post, Todo } from '../model.ts';
import { escapeText, unescapeText } from './text-escape.ts';
import type { StoredFile } from '../file-index.ts';

export type Row = Readonly<Record<string, unknown>>;
export type Value = string | number | boolean | null;
/** Values by column name. */
export type NewRow = Readonly<Record<string, Value>>;

/** The columns that the program writes, by table. */
export const columnsOf = {
  authors: 'id, name, email, created_at',
  accounts: 'username, id, email, roles, password_hash',
  posts: 'id, title, content, status, created_at, author_id',
  comments: 'id, post_id, content, created_at',
  todos: 'id, title, completed',
  articles: 'id, document',
} as const;
export type Table = keyof typeof columnsOf;

/** The initial rows of a new database. Each table follows those that it refers to. */
export function toInitialRows(initial: InitialData): readonly (readonly [Table, NewRow[]])[] {
  const tables = ['authors', 'posts', 'comments', 'todos'] as const;
  return [
    ...tables.map((table) => [table, initial[table].map(toRow)] as const),
    ['articles', initial.articles.map(toArticleRow)],
  ];
}

/** Columns that are not named like their member. */
const columnOf: Readonly<Record<string, string>> = {
  createdAt: 'created_at',
  authorId: 'author_id',
  postId: 'post_id',
  passwordHash: 'password_hash',
};

/** The row of a record: a column for each member. Texts are escaped, and lists are JSON. */
export function toRow(record: Partial<Post | Comment | Author | Todo | Account>): NewRow {
  const row: Record<string, Value> = {};
  for (const [name, value] of Object.entries<Value | readonly string[]>({ ...record })) {
    const kept = typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
    row[columnOf[name] ?? name] = typeof kept === 'string' ? escapeText(kept) : kept;
  }
  return row;
}

export function toPost(row: Row): Post {
  return {
    id: String(row['id']),
    title: toText(row['title']),
    content: toText(row['content']),
    status: row['status'] as Post['status'], // as it was stored
    createdAt: String(row['created_at']),
    authorId: row['author_id'] as string | null, // by the schema
  };
}

export function toComment(row: Row): Comment {
  return {
    id: String(row['id']),
    content: toText(row['content']),
    createdAt: String(row['created_at']),
    postId: String(row['post_id']),
  };
}

export function toAuthor(row: Row): Author {
  return {
    id: String(row['id']),
    name: toText(row['name']),
    email: toText(row['email']),
    createdAt: String(row['created_at']),
  };
}

export function toTodo(row: Row): Todo {
  // SQLite has no booleans: 0 or 1.
  const completed = Boolean(row['completed']);
  return { id: String(row['id']), title: toText(row['title']), completed };
}

export function toAccount(row: Row): Account {
  return { ...toPerson(row), passwordHash: String(row['password_hash']) };
}

/** The row need not contain the hash. */
export function toPerson(row: Row): Omit<Account, 'passwordHash'> {
  const roles: unknown = JSON.parse(toText(row['roles']));
  return {
    id: String(row['id']),
    username: toText(row['username']),
    email: toText(row['email']),
    roles: Array.isArray(roles) ? roles.map(String) : [],
  };
}

/** Articles are stored as JSON, so their texts need no escape. */
export function toArticle(row: Row): Article {
  return { id: Number(row['id']), json: String(row['document']) };
}

export function toArticleRow({ id, json }: Article): NewRow {
  return { id, document: json };
}

export function toFile(row: Row): StoredFile {
  return {
    storedName: toText(row['stored_name']),
    temporaryName: String(row['disk_name']),
    size: Number(row['size']),
  };
}

/** The authors of the accounts given at this start (R20), with the same ids. */
export function authorsOfAccounts({ accounts, authors }: InitialData): readonly Author[] {
  const ids = new Set(accounts.map(({ id }) => id));
  return authors.filter(({ id }) => ids.has(id));
}

function toText(value: unknown): string {
  return unescapeText(String(value));
}
