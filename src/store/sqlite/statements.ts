/** Prepared statements that take and give records. */

import { columnsOf, type NewRow, type Row, type Table } from '../rows.ts';
import type { Database, Value } from './database.ts';
import type { SqliteTables } from './writes.ts';

export interface Query<T> {
  first(...values: readonly Value[]): T | undefined;
  all(...values: readonly Value[]): readonly T[];
}

/** Makes queries of one table; each is named by what follows `FROM`. */
export function createSelect<T>(
  database: Database,
  table: Table,
  toRecord: (row: Row) => T,
): (rest: string) => Query<T> {
  return (rest) => {
    const statement = database.prepare(`SELECT ${columnsOf[table]} FROM ${table} ${rest}`);
    return {
      first(...values) {
        const row = statement.get(...values);
        return row && toRecord(row);
      },
      all: (...values) => statement.all(...values).map(toRecord),
    };
  };
}

/** False where the row was not stored because of `onConflict`. */
export function createInsert(
  { database, versions }: SqliteTables,
  table: Table,
  onConflict = '',
): (row: NewRow) => boolean {
  const columns = columnsOf[table];
  const places = columns.replaceAll(/\w+/g, ':$&');
  const statement = database.prepare(
    `INSERT INTO ${table} (${columns}) VALUES (${places}) ${onConflict}`,
  );
  return (row) => {
    const values = Object.entries(row).map(([name, value]) => {
      return [name, typeof value === 'boolean' ? Number(value) : value] as const;
    });
    versions[table] += 1;
    return Number(statement.run(Object.fromEntries(values)).changes) > 0;
  };
}

/** `UPDATE` or `DELETE FROM` a table, and `rest`; false where it found no row. */
export function createChange(
  { database, versions }: SqliteTables,
  [verb, table, rest]: readonly ['UPDATE' | 'DELETE FROM', Table, string],
): (...values: readonly Value[]) => boolean {
  const statement = database.prepare(`${verb} ${table} ${rest}`);
  return (...values) => {
    versions[table] += 1;
    return Number(statement.run(...values).changes) > 0;
  };
}

/** The authors of accounts are written again and again (R20). */
export const renewAuthor =
  'ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email';
