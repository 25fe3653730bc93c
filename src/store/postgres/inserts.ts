/** New records in PostgreSQL: those that are stored at once are one statement. */

import { kinds, type Listed } from '../shared.ts';
import { columnsOf, type NewRow, type Table, toColumn, toRow } from '../sql/rows.ts';
import type { Sql } from '../sql/statements.ts';
import { type Batch, createLoader, individually } from './batch.ts';
import { busy, isAway, isKeyTaken } from './faults.ts';
import type { Pool } from './pool.ts';
import {
  isFirst,
  noteKeys,
  noteNewKeys,
  type PostgresRequests,
  toKeyedRow,
  toKeyedValues,
} from './requests.ts';
import { type Versions, xid } from './versions.ts';

/** The texts of rows that are inserted by one statement, and the least that a row counts. */
const insertTextMax = 1_048_576;
const insertTextMin = 10_485;

export interface InsertDeps {
  readonly versions: Versions;
  readonly pool: Pool;
  readonly requests: PostgresRequests;
}

export function createInsert(
  { pool, versions, requests }: InsertDeps,
  table: Listed,
): ReturnType<Sql['createInsert']> {
  const { owner } = kinds[table];
  const returned = owner === undefined ? xid : `${toColumn(owner)}, ${xid}`;
  const toText = (condition = ''): string =>
    `INSERT INTO inkwell.${table} (${columnsOf[table]})
    SELECT ${columnsOf[table]} FROM ${rowsOf(table, 1)}${condition} ORDER BY ordinality
    RETURNING id, ${returned}`;
  /** Returns whether each row was stored. */
  const insertBy =
    (text: string, toValues = toKeyedValues) =>
    async (rows: readonly NewRow[], askedAt: number): Promise<readonly boolean[]> => {
      const insert = pool.write({ text, values: toValues(rows) }, askedAt);
      const stored = new Set((await versions.track(insert, table)).map(({ id }) => id));
      return rows.map(({ id }) => stored.has(id));
    };
  const insert = createLoader(toInserts(insertBy(toText(), (rows) => [JSON.stringify(rows)])));
  const insertAll = insertBy(`WITH ${noteKeys} ${toText()}`);
  const insertNew = insertBy(`WITH ${noteNewKeys()} ${toText(` WHERE id ${isFirst}`)}`);
  const insertKeyed = createLoader(
    toInserts((rows, askedAt) =>
      insertAll(rows, askedAt).catch((error: unknown) => {
        if (rows.length === 1 || !isKeyTaken(error)) throw error;
        return insertNew(rows, askedAt);
      }),
    ),
  );
  return async (record, once) => {
    const row = toRow(record);
    if (once === undefined) return (await insert(row), record);
    const attempt = async () => ((await insertKeyed(toKeyedRow(row, once))) ? record : undefined);
    const done = await requests.run(once, attempt);
    if (done === undefined) throw busy();
    return done;
  };
}

/** Joins inserts of rows. Each row is stored, or fails, by itself. */
export function toInserts<T>(
  insert: (rows: readonly NewRow[], askedAt: number) => Promise<readonly T[]>,
): Batch<NewRow, T> {
  return {
    costMax: insertTextMax,
    costOf: (row) => Math.max(insertTextMin, lengthOf(row)),
    async loadMany(rows, askedAt) {
      try {
        return await insert(rows, askedAt);
      } catch (error) {
        // While the database is away, rows may have been stored: they are not inserted again.
        if (rows.length === 1 || isAway(error)) throw error;
        return rows.map(() => individually);
      }
    },
    loadOne: async (row, askedAt) => (await insert([row], askedAt))[0] as T, // as many as rows
  };
}

/** The rows of a table from a parameter with JSON, with their positions. */
export function rowsOf(table: Table, parameter: number): string {
  const row = `null::inkwell.${table}`;
  return `json_populate_recordset(${row}, $${parameter}::text::json) WITH ORDINALITY`;
}

/** The characters of a row. */
function lengthOf(row: NewRow): number {
  return Object.values(row).reduce<number>((sum, value) => sum + String(value).length, 0);
}
