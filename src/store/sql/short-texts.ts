/** Reads of rows without their long texts, so that a page of rows has a bound before it is read. */

import { columnsOf, type Row, type Table } from './rows.ts';

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
