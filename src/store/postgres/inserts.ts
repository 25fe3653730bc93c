/** New records in PostgreSQL: those that are stored at once are one statement. */

import { kinds, type Listed } from '../shared.ts';
import { columnsOf, type NewRow, type Table, toColumn, toRow } from '../sql/rows.ts';
import type { Sql } from '../sql/statements.ts';
import { type Batch, createLoader, individually } from './batch.ts';
import type { Statement } from './connection.ts';
import { busy, isAway, isKeyTaken } from './faults.ts';
import type { Pool } from './pool.ts';
import {
  ifNew,
  type Insertion,
  isFirst,
  noteKeys,
  type PostgresRequests,
  toKeyValues,
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
  const insertBy = (toStatement: ToInsert) =>
    createLoader(
      toInserts(async (insertions, askedAt, isAgain) => {
        const insert = pool.write(toStatement(insertions, isAgain), askedAt);
        const stored = new Set((await versions.track(insert, table)).map(({ id }) => id));
        return insertions.map(({ row }) => stored.has(row['id']));
      }),
    );
  const text = toText();
  const insert = insertBy((insertions) => ({ text, values: [toJson(insertions)] }));
  const allText = `WITH ${noteKeys()} ${text}`;
  const newText = `WITH ${noteKeys(ifNew)} ${toText(` WHERE id ${isFirst}`)}`;
  const insertKeyed = insertBy((insertions, isAgain) => ({
    text: isAgain ? newText : allText,
    values: [toJson(insertions), ...toKeyValues(insertions)],
  }));
  return async (record, once) => {
    const row = toRow(record);
    if (once === undefined) return (await insert({ row }), record);
    const attempt = async () => ((await insertKeyed({ row, once })) ? record : undefined);
    const done = await requests.run(once, attempt);
    if (done === undefined) throw busy();
    return done;
  };
}

/** `isAgain`: after a key was stored already. Without a key that is the same. */
export type ToInsert = (insertions: readonly Insertion[], isAgain: boolean) => Statement;

/** Joins inserts of rows. Each row is stored, or fails, by itself. */
export function toInserts<T>(
  insert: (
    insertions: readonly Insertion[],
    askedAt: number,
    isAgain: boolean,
  ) => Promise<readonly T[]>,
): Batch<Insertion, T> {
  return {
    costMax: insertTextMax,
    costOf: ({ row }) => Math.max(insertTextMin, lengthOf(row)),
    async loadMany(insertions, askedAt) {
      const isOne = insertions.length === 1;
      try {
        return await insert(insertions, askedAt, false).catch((error: unknown) => {
          if (isOne || !isKeyTaken(error)) throw error;
          return insert(insertions, askedAt, true);
        });
      } catch (error) {
        // While the database is away, rows may have been stored: they are not inserted again.
        if (isOne || isAway(error)) throw error;
        return insertions.map(() => individually);
      }
    },
    loadOne: async (each, askedAt) => (await insert([each], askedAt, false))[0] as T, // one of one
  };
}

/** The rows as a parameter of `rowsOf`. */
export function toJson(insertions: readonly Insertion[]): string {
  return JSON.stringify(insertions.map(({ row }) => row));
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
