/**
 * Rows ↔ records, for both drivers on SQL, which have the same tables and columns. Texts that a
 * person chose are escaped in rows, and long ones can be left out of a read.
 */

import { kinds, type RecordOf } from '../shared.ts';
import type { Account, Comment, Post } from '../model.ts';
import type { ListedFile } from '../file-index.ts';
import type { FirstWrite } from '../once.ts';

export type Row = Readonly<Record<string, unknown>>;
export type Value = string | number | boolean | null;
/**
 * The cells of a row, as the database sends them: first the columns of the table, in their order,
 * then whatever else the statement selects. No table has more than seven columns.
 */
export type Cells = [string, string, string, string, string, string, string, ...unknown[]];
/** Values by column name. */
export type NewRow = Readonly<Record<string, Value>>;

/** The columns that the program writes, by table. */
export const columnsOf = {
  authors: 'id, name, email, created_at',
  accounts: 'username, id, email, roles, password_hash',
  posts: 'id, title, content, status, created_at, author_id, published_at',
  comments: 'id, post_id, content, created_at, name, author_id',
  pending_comments: 'id, post_id, content, created_at, name, author_id',
  todos: 'id, title, completed',
  articles: 'id, document',
} as const;
export type Table = keyof typeof columnsOf;

export function namesOf(table: Table): readonly string[] {
  return columnsOf[table].split(', ');
}

/** Columns that are not named like their member. */
const columnOf: Readonly<Record<string, string>> = {
  createdAt: 'created_at',
  authorId: 'author_id',
  publishedAt: 'published_at',
  postId: 'post_id',
  passwordHash: 'password_hash',
  json: 'document',
};
export function toColumn(member: string): string {
  return columnOf[member] ?? member;
}

/**
 * The expression that selects the records of a list, and that has an index: a column, or two whose
 * values are joined by a space.
 */
export function toSelecting(list: string): string {
  const [first = '', second] = list.split(' ').map(toColumn);
  return second === undefined ? first : `(CAST(${first} AS text) || ' ' || ${second})`;
}

/** The row of a record: a column for each member. Texts are escaped, and lists are JSON. */
export function toRow(record: object): NewRow {
  const row: Record<string, Value> = {};
  for (const [name, value] of Object.entries<Value | readonly string[]>({ ...record })) {
    const kept = typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
    row[toColumn(name)] = typeof kept === 'string' && name !== 'json' ? escapeText(kept) : kept;
  }
  return row;
}

/** The cells of a row that has them by name. */
export function toCells(table: Table, row: Row): Cells {
  return namesOf(table).map((column) => row[column]) as Cells; // as it was stored
}

const toComment = ([id, postId, content, createdAt, name, authorId]: Cells): Comment => ({
  id,
  content: unescapeText(content),
  createdAt,
  postId,
  name: unescapeName(name),
  authorId,
});

/**
 * Makes a record of the cells of a row that `toRow` made, by table. Each table is written out,
 * because rows are read by the hundred: 21 ns a comment, against 71 ns for a loop over the names of
 * the columns.
 */
export const toRecord: { readonly [N in Table]: (cells: Cells) => RecordOf[N] } = {
  authors: ([id, name, email, createdAt]) => ({
    id,
    name: unescapeText(name),
    email: unescapeText(email),
    createdAt,
  }),
  accounts: ([username, id, email, roles, passwordHash]) => ({
    username: unescapeText(username),
    id,
    email: unescapeText(email),
    roles: JSON.parse(unescapeText(roles)) as Account['roles'],
    passwordHash,
  }),
  posts: ([id, title, content, status, createdAt, authorId, publishedAt]) => ({
    id,
    title: unescapeText(title),
    content: unescapeText(content),
    status: status as Post['status'],
    createdAt,
    authorId,
    publishedAt,
  }),
  comments: toComment,
  pending_comments: toComment,
  // SQLite has no booleans, and sends 1; PostgreSQL sends `t`.
  todos: ([id, title, completed]) => ({
    id,
    title: unescapeText(title),
    completed: completed === 't' || Number(completed) === 1,
  }),
  // Articles are stored as JSON, so their texts need no escape.
  articles: ([id, json]) => ({ id: Number(id), json }),
};

export function toFile(row: Row): ListedFile {
  return {
    storedName: toText(row['stored_name']),
    temporaryName: String(row['disk_name']),
    size: Number(row['size']),
    place: Number(row['seq']),
    owner: typeof row['owner'] === 'string' ? row['owner'] : null,
  };
}

export function toFirstWrite({ print, result }: Row): FirstWrite {
  return { fingerprint: String(print), id: String(result) };
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

function unescapeName(kept: string | null): string | null {
  return kept === null ? null : unescapeText(kept);
}

function unescapeText(kept: string): string {
  if (!kept.includes('\u241a')) return kept;
  return kept.replaceAll(everyEscape, (_escape, hex: string) => {
    return String.fromCharCode(Number.parseInt(hex, 16));
  });
}

/** The columns with texts of any length, by table. */
const textsOf: Readonly<Partial<Record<Table, readonly string[]>>> = Object.fromEntries(
  Object.entries(kinds).map(([table, { texts }]) => [table, texts.map(toColumn)]),
);

/** The position of the first of these columns, by table. */
const firstTextOf: Readonly<Partial<Record<Table, number>>> = Object.fromEntries(
  Object.entries(textsOf).map(([table, [text = '']]) => [
    table,
    namesOf(table as Table).indexOf(text),
  ]),
);

/** The size of a row's texts in bytes, which a database knows without reading them. */
export function sizeOf(table: Table): string {
  return textsOf[table]?.map((column) => `octet_length(${column})`).join(' + ') ?? '0';
}

/**
 * The columns of a table to select. The texts of a row are null if they have more than `bytesMax`
 * bytes together. `owner`: the column that selects the rows of a list, if there is one.
 */
export function toShort(table: Table, bytesMax: string, owner?: string): string {
  const isShort = `CASE WHEN ${sizeOf(table)} <= ${bytesMax}`;
  return select(table, owner, (text) => `${isShort} THEN ${text} END`);
}

/** The columns of a table to select, texts as bytes. `owner`: as for `toShort`. */
export function toBytes(table: Table, owner?: string): string {
  return select(table, owner, (text) => `CAST(${text} AS BLOB)`);
}

/** The column `owner` is not read: it has the value that the statement selects rows by. */
function select(
  table: Table,
  owner: string | undefined,
  toExpression: (text: string) => string,
): string {
  const toSelected = (column: string): string => {
    // NULL gets no name, so that ORDER BY means the column of the table.
    if (column === owner) return 'NULL';
    const isText = textsOf[table]?.includes(column) === true;
    return isText ? `${toExpression(column)} AS ${column}` : column;
  };
  return namesOf(table).map(toSelected).join(', ');
}

/** True if the texts of a row are longer than `toShort` reads. */
export function isTooLong(table: Table, cells: Cells): boolean {
  const at = firstTextOf[table];
  return at !== undefined && cells[at] === null;
}
