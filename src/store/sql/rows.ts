/**
 * Rows ↔ records, for both drivers on SQL, which have the same tables and columns. Texts that a
 * person chose are escaped in rows, and long ones can be left out of a read.
 */

import type { InitialData } from '../store.ts';
import type { Account, Article, Author, Comment, Post, Todo } from '../model.ts';
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
  // SQLite has no booleans: 0 or 1. PostgreSQL sends `t` or `f`.
  const completed = row['completed'] === 1 || row['completed'] === 't';
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

/** With the flag `u`, surrogates in a class match only lone surrogates. */
const unkeepable = /[\0\u{241a}\u{d800}-\u{dfff}]/u;
const everyUnkeepable = /[\0\u{241a}\u{d800}-\u{dfff}]/gu;
const everyEscape = /\u{241a}([0-9a-f]{4})/gu;

/**
 * Escapes a text for a database. It stores Unicode text, but a JavaScript string can also contain
 * U+0000, which PostgreSQL refuses and where SQLite ends the text, and lone surrogates, which UTF-8
 * cannot encode (R8: any text comes back as it was sent). Each of these is stored as `␚` (U+241A)
 * and four hex digits, and so is `␚`. All other texts, which is nearly every text, are stored
 * unchanged and can be read with the database's own tools.
 */
export function escapeText(text: string): string {
  if (!unkeepable.test(text)) return text;
  return text.replaceAll(everyUnkeepable, (unit) => {
    return `\u241a${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

function unescapeText(kept: string): string {
  if (!kept.includes('\u241a')) return kept;
  return kept.replaceAll(everyEscape, (_escape, hex: string) => {
    return String.fromCharCode(Number.parseInt(hex, 16));
  });
}

/** The columns with texts of any length, by table. */
const textsOf: Readonly<Partial<Record<Table, readonly string[]>>> = {
  posts: ['title', 'content'],
  comments: ['content'],
  todos: ['title'],
  articles: ['document'],
};

/** The size of a row's texts in bytes, which a database knows without reading them. */
export function sizeOf(table: Table): string {
  return textsOf[table]?.map((column) => `octet_length(${column})`).join(' + ') ?? '0';
}

/** The columns of a table; texts of more bytes together are null. */
export function toShort(table: Table, bytesMax: string): string {
  const toColumn = (column: string): string =>
    textsOf[table]?.includes(column) === true
      ? `CASE WHEN ${sizeOf(table)} <= ${bytesMax} THEN ${column} END AS ${column}`
      : column;
  return columnsOf[table].split(', ').map(toColumn).join(', ');
}

/** True if texts of a row were left out by `toShort`. */
export function isShortened(table: Table, row: Row): boolean {
  const [text] = textsOf[table] ?? [];
  return text !== undefined && row[text] === null;
}
