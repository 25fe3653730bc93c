/** New records in PostgreSQL: those that are stored at once are one statement. */

import { kinds, type Listed } from '../shared.ts';
import { columnsOf, namesOf, type NewRow, type Table, toColumn, toRow } from '../sql/rows.ts';
import type { Sql } from '../sql/statements.ts';
import { type Batch, createLoader, individually } from './batch.ts';
import type { Statement } from './connection.ts';
import { busy, isAway, isKeyTaken } from './faults.ts';
import type { Pool } from './pool.ts';
import {
  ifNew,
  type Insertion,
  isFirst,
  keyColumns,
  noteKeys,
  type PostgresRequests,
  toKeyValues,
} from './requests.ts';
import { type Versions, xid } from './versions.ts';

/** The texts of rows that are inserted by one statement, and the least that a row counts. */
const insertTextMax = 1_048_576;
const insertTextMin = 10_485;
/** Limit for the rows of a list of parameters: there is a statement for each number of rows. */
const listedMax = 16;

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
  const toListed = createToListed(table, returned);
  const insertKeyed = insertBy((insertions, isAgain) => {
    const keys = toKeyValues(insertions);
    if (!isAgain && insertions.length <= listedMax) return toListed(insertions, keys);
    return { text: isAgain ? newText : allText, values: [toJson(insertions), ...keys] };
  });
  return async (record, once) => {
    const row = toRow(record);
    if (once === undefined) return (await insert({ row }), record);
    const attempt = async () => ((await insertKeyed({ row, once })) ? record : undefined);
    const done = await requests.run(once, attempt);
    if (done === undefined) throw busy();
    return done;
  };
}

/**
 * Inserts few rows and their keys as lists of parameters. From JSON and arrays, PostgreSQL would
 * take 1.42 times as many instructions for one row, and 1.26 times for eight.
 */
function createToListed(table: Table, returned: string) {
  const names = namesOf(table);
  const toText = (count: number): string => `WITH first AS (
      INSERT INTO inkwell.requests (${keyColumns.join()})
      VALUES ${toList(count, keyColumns.length, names.length * count)}
    ) INSERT INTO inkwell.${table} (${columnsOf[table]}) VALUES ${toList(count, names.length)}
    RETURNING id, ${returned}`;
  const texts = Array.from({ length: listedMax }, (_, before) => toText(before + 1));
  return (insertions: readonly Insertion[], keys: Statement['values']): Statement => {
    const columns = names.map((name) => insertions.map(({ row }) => row[name] ?? null));
    return { text: texts[insertions.length - 1] ?? '', values: [...columns, ...keys].flat() };
  };
}

/** Parameters column by column, as rows: `($1, $3), ($2, $4)`. */
function toList(rows: number, columns: number, before = 0): string {
  const parameters = (row: number): readonly string[] =>
    Array.from({ length: columns }, (_, column) => `$${before + column * rows + row + 1}`);
  return Array.from({ length: rows }, (_, row) => `(${parameters(row).join()})`).join();
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
