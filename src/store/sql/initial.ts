/** What a start and its rehearsal write in SQL, for both drivers. */

import type { Author } from '../model.ts';
import { type InitialData, pageRecordsMax } from '../store.ts';
import { type NewRow, type Table, toRow } from './rows.ts';
import type { Sql } from './statements.ts';
import type { Transaction } from './transaction.ts';

type Inserting = Pick<Sql, 'insert'>;

export const unlessThere = { onConflict: 'ON CONFLICT DO NOTHING RETURNING id' };

/** Each table follows those that it refers to. */
function toInitialRows(initial: InitialData): readonly (readonly [Table, NewRow[]])[] {
  const tables = ['authors', 'posts', 'comments', 'todos', 'articles'] as const;
  return tables.map((table) => [table, initial[table].map(toRow)]);
}

/** Fills a new store. A command may have added an account and its author before. */
export function* addInitial(sql: Inserting, initial: InitialData): Transaction<void> {
  for (const [table, rows] of toInitialRows(initial)) yield* sql.insert(table, rows, unlessThere);
}

/** Every account is also an author with the same id (R20), updated at every start. */
export function* keepAuthors(sql: Inserting, authors: readonly Author[]): Transaction<void> {
  // In one order, so that two nodes that start never wait in a circle.
  const rows = authors.map(toRow).toSorted((a, b) => (String(a['id']) < String(b['id']) ? -1 : 1));
  const onConflict = `ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email
    WHERE authors.name <> excluded.name OR authors.email <> excluded.email RETURNING id`;
  yield* sql.insert('authors', rows, { onConflict });
}

/** The authors of the accounts given at this start, with the same ids. */
export function authorsOfAccounts({ accounts, authors }: InitialData): readonly Author[] {
  const ids = new Set(accounts.map(({ id }) => id));
  return authors.filter(({ id }) => ids.has(id));
}

/** Writes and reads each table. Returns the number of accounts. To be rolled back. */
export function* rehearse(
  sql: Pick<Sql, 'insert' | 'schema'>,
  sample: InitialData,
): Transaction<number> {
  for (const [table, rows] of toInitialRows(sample)) {
    yield* sql.insert(table, rows, unlessThere);
    yield ['', `SELECT * FROM ${sql.schema}${table} LIMIT ${pageRecordsMax}`, []];
  }
  const [found] = yield ['', `SELECT count(*) AS count FROM ${sql.schema}accounts`, []];
  return Number(found?.['count']);
}
