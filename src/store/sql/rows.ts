/**
 * Rows ↔ records, for both drivers on SQL, which have the same tables and columns. Texts that a
 * person chose are escaped in rows, and long ones can be left out of a read.
 */

import { kinds, type RecordOf } from '../shared.ts';
import type { InitialData } from '../store.ts';
import type { Author } from '../model.ts';
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

export function namesOf(table: Table): readonly string[] {
  return columnsOf[table].split(', ');
}

/** The initial rows of a new database. Each table follows those that it refers to. */
export function toInitialRows(initial: InitialData): readonly (readonly [Table, NewRow[]])[] {
  const tables = ['authors', 'posts', 'comments', 'todos', 'articles'] as const;
  return tables.map((table) => [table, initial[table].map(toRow)]);
}

/** Columns that are not named like their member. */
const columnOf: Readonly<Record<string, string>> = {
  createdAt: 'created_at',
  authorId: 'author_id',
  postId: 'post_id',
  passwordHash: 'password_hash',
  json: 'document',
};
const memberOf: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(columnOf).map(([member, column]) => [column, member]),
);
/** The columns and their members, by table: listed once, because rows are read by the hundred. */
const membersOf: Readonly<Record<string, readonly (readonly [string, string])[]>> =
  Object.fromEntries(
    (Object.keys(columnsOf) as Table[]).map((table) => [
      table,
      namesOf(table).map((column) => [column, memberOf[column] ?? column]),
    ]),
  );

export function toColumn(member: string): string {
  return columnOf[member] ?? member;
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

/** The record of a row that `toRow` made, with the members whose columns were read. */
export function toRecord<N extends Table>(table: N, row: Row): RecordOf[N] {
  const record: Record<string, unknown> = {};
  for (const [column, member] of membersOf[table] ?? []) {
    const value = row[column];
    if (value !== undefined) record[member] = toValue(table, column, value);
  }
  return record as unknown as RecordOf[N]; // as it was stored
}

function toValue(table: Table, column: string, value: unknown): unknown {
  // Articles are stored as JSON, so their texts need no escape.
  if (table === 'articles') return column === 'id' ? Number(value) : value;
  // SQLite has no booleans: 0 or 1. PostgreSQL sends `t` or `f`.
  if (column === 'completed') return value === 1 || value === 't';
  if (column === 'roles') return JSON.parse(toText(value));
  return typeof value === 'string' ? unescapeText(value) : value;
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
const textsOf: Readonly<Partial<Record<Table, readonly string[]>>> = Object.fromEntries(
  Object.entries(kinds).map(([table, { texts }]) => [table, texts.map(toColumn)]),
);

/** The size of a row's texts in bytes, which a database knows without reading them. */
export function sizeOf(table: Table): string {
  return textsOf[table]?.map((column) => `octet_length(${column})`).join(' + ') ?? '0';
}

/** These columns of a table; texts of more bytes together are null. */
export function toShort(table: Table, bytesMax: string, columns = namesOf(table)): string {
  return select(
    table,
    columns,
    (text) => `CASE WHEN ${sizeOf(table)} <= ${bytesMax} THEN ${text} END`,
  );
}

/** The columns of a table; texts are bytes. */
export function toBytes(table: Table): string {
  return select(table, namesOf(table), (text) => `CAST(${text} AS BLOB)`);
}

function select(
  table: Table,
  columns: readonly string[],
  toExpression: (text: string) => string,
): string {
  return columns
    .map((column) =>
      textsOf[table]?.includes(column) === true ? `${toExpression(column)} AS ${column}` : column,
    )
    .join(', ');
}

/** The JSON of a row with these members, which have texts; if these have more bytes, empty. */
export function toJson(table: Table, members: readonly string[], bytesMax: string): string {
  const pairs = members.map((member) => {
    const column = toColumn(member);
    // Ids, dates and words need no escapes, which take the database half of the time.
    const isText = textsOf[table]?.includes(column) === true;
    return `"${member}":${isText ? `' || to_json(${column}) || '` : `"' || ${column} || '"`}`;
  });
  const json = `'{${pairs.join()}}'`;
  return `CASE WHEN ${sizeOf(table)} <= ${bytesMax} THEN ${json} ELSE '' END AS json`;
}

/** True if texts of a row were left out by `toShort`, or its JSON by the driver. */
export function isShortened(table: Table, row: Row): boolean {
  const [text] = textsOf[table] ?? [];
  return row['json'] === '' || (text !== undefined && row[text] === null);
}
