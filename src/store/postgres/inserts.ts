/** New records in PostgreSQL: those that are stored at once are one statement. */

import type { Listed } from '../shared.ts';
import type { Changed } from '../store.ts';
import { columnsOf, type NewRow, toRow } from '../sql/rows.ts';
import type { Sql } from '../sql/statements.ts';
import { type Batch, createLoader, individually } from './batch.ts';
import { busy, isAway } from './client/faults.ts';
import type { Pool } from './client/pool.ts';
import { type Insertion, isFirst, noteKeys, type PostgresRequests, toKeys } from './requests.ts';

/** The texts of rows that are inserted by one statement, and the least that a row counts. */
const insertTextMax = 1_048_576;
const insertTextMin = 10_485;

export interface InsertDeps {
  readonly pool: Pool;
  readonly requests: PostgresRequests;
}

/** Returns a function that stores a new record, once under a key, and returns it. */
export function createInsert(deps: InsertDeps, table: Listed): ReturnType<Sql['createInsert']> {
  const insert = createInserting(deps, table);
  return async (record, once) => {
    const stored = await insert({ row: toRow(record), once });
    if (stored === false) throw busy();
    return stored === true ? record : stored;
  };
}

/**
 * Returns a function that stores a row, once under a key; of a comment, if its post is there. Posts
 * are locked first, until their comments are stored: the schema takes the turn of each.
 */
export function createInserting(
  { pool, requests }: InsertDeps,
  table: Listed,
): (insertion: Insertion) => Promise<Changed> {
  const isOnPost = table === 'comments' || table === 'pending_comments';
  const added = `added AS MATERIALIZED (SELECT * FROM ${rowsOf(table, 1)})`;
  const posts = `post AS MATERIALIZED (
      SELECT id AS there FROM inkwell.posts WHERE id = ANY (ARRAY(SELECT post_id FROM added))
      ORDER BY id FOR KEY SHARE
    )`;
  const onPost = 'added JOIN post ON there = post_id';
  const toText = (keys: readonly string[], condition: string): string => {
    const before = [...(isOnPost ? [added, posts] : []), ...keys].join();
    return `${before && `WITH ${before}`} INSERT INTO inkwell.${table} (${columnsOf[table]})
      SELECT ${columnsOf[table]} FROM ${isOnPost ? onPost : rowsOf(table, 1)}
      WHERE ${condition} ORDER BY ordinality RETURNING id`;
  };
  const text = toText([], 'true');
  const mayBeNoted = isOnPost ? `id IN (SELECT id FROM ${onPost})` : 'true';
  const keyedText = toText([noteKeys(mayBeNoted)], isFirst('id'));
  const insert = createLoader(
    toInserts(async (insertions, askedAt) => {
      const json = JSON.stringify(insertions.map(({ row }) => row));
      const keys = toKeys(insertions);
      const statement = keys ? { text: keyedText, values: [json, keys] } : { text, values: [json] };
      const rows = await pool.write(statement, askedAt);
      const stored = new Set(rows.map(({ id }) => id));
      return insertions.map(({ row }) => stored.has(row['id']));
    }),
  );
  return async (insertion) => {
    const { once } = insertion;
    if (once === undefined) return insert(insertion);
    return (await requests.run(once, async () => (await insert(insertion)) || undefined)) ?? false;
  };
}

/** Joins inserts of rows. Each row is stored, or fails, by itself. */
export function toInserts<T>(
  insert: (insertions: readonly Insertion[], askedAt: number) => Promise<readonly T[]>,
): Batch<Insertion, T> {
  return {
    costMax: insertTextMax,
    costOf: ({ row }) => Math.max(insertTextMin, lengthOf(row)),
    async loadMany(insertions, askedAt) {
      try {
        return await insert(insertions, askedAt);
      } catch (error) {
        // While the database is away, rows may have been stored: they are not inserted again.
        if (insertions.length === 1 || isAway(error)) throw error;
        return insertions.map(() => individually);
      }
    },
    loadOne: async (each, askedAt) => (await insert([each], askedAt))[0] as T, // one of one
  };
}

/** The rows of a table from a parameter with JSON, with their positions. */
export function rowsOf(table: string, parameter: number): string {
  const row = `null::inkwell.${table}`;
  return `json_populate_recordset(${row}, $${parameter}::text::json) WITH ORDINALITY`;
}

/** The characters of a row. */
function lengthOf(row: NewRow): number {
  return Object.values(row).reduce<number>((sum, value) => sum + String(value).length, 0);
}
