/**
 * Writes under a key, in PostgreSQL (R40). Each is one statement, which stores its key as well.
 *
 * 1. Records are locked first, then keys in their order, and then comments take their turn: what
 *    waits for one another never waits in a circle. The removal of a post takes its comments with
 *    it, after its key, so that the removal of a comment locks the post before its own key.
 * 2. New records: the keys are inserted that are not stored, and then the records of these keys.
 *    Changes: the record is changed, and then the key inserted; a key that another node has stored
 *    at the same moment fails the statement, which undoes the change.
 * 3. If an open transaction has inserted the key, the statement waits until that transaction ends.
 *    After the time limit of a statement the request is refused (`request_in_progress`).
 * 4. If nothing was stored, the key is looked up by a statement of its own, which sees what was
 *    committed meanwhile and removes a key that is a day old. Then the write is tried again.
 * 5. After every hundredth write under a key, the oldest keys of its kind are checked, those of
 *    accounts or those of clients without a token: what is a day old or beyond the limit goes.
 *
 *     attempt                    key, looked up      result
 *     stored                     –                   that of the write
 *     key was stored             same request        that of the first write
 *     key was stored             another request     idempotency_key_reused
 *     key was stored             a day old: removed  that of a second attempt
 *     no such record             not stored          that of the write: nothing stored
 *     no such record (any more)  same request        that of the first, which removed it
 */

import { createFindRequest } from '../sql/ports.ts';
import type { NewRow } from '../sql/rows.ts';
import type { Sql } from '../sql/statements.ts';
import type { Changed, DriverOptions } from '../store.ts';
import { anonymousRequestsMax, type Once, type Repeated, requestsMax } from '../once.ts';
import { sql, type Statement } from './client/connection.ts';
import { busy, isKeyInUse, isKeyTaken } from './client/faults.ts';
import type { Pool } from './client/pool.ts';

export type PostgresRequests = ReturnType<typeof createRequests>;

const isKept = `made > now() - interval '1 day'`;
const attemptsMax = 2;
/** After each `sweepWrites` writes under keys, the `sweptMax` oldest keys are checked. */
const sweepWrites = 100;
const sweptMax = 200;

const ofKind = 'FROM inkwell.requests WHERE is_anonymous = $1';
// Between two numbers: a plan for a list of them, made while there are few keys, would read all
// keys for as long as it is used. Numbers may be missing, so that their span bounds the rows.
const sweep = `DELETE ${ofKind}
    AND seq BETWEEN (SELECT min(seq) ${ofKind})
      AND (SELECT max(seq) FROM (SELECT seq ${ofKind} ORDER BY seq LIMIT ${sweptMax}) AS oldest)
    AND (NOT ${isKept} OR seq <= (
      SELECT CASE WHEN max(seq) - min(seq) >= $2::bigint
        THEN (SELECT seq ${ofKind} ORDER BY seq DESC OFFSET $2 LIMIT 1) END ${ofKind}))`;

interface Deps {
  readonly pool: Pool;
  readonly timeoutSeconds: DriverOptions['timeoutSeconds'];
}

export function createRequests({ pool, timeoutSeconds }: Deps) {
  const schema = 'inkwell.';
  const removeOld = `WITH ended AS (DELETE FROM inkwell.requests WHERE key = $1 AND NOT ${isKept})`;
  const lookUp = (once: Once, askedAt: number) => {
    // A write, because the statement also removes a key that is a day old.
    const read: Sql['read'] = (text, values) =>
      pool.write({ text: `${removeOld} ${text}`, values }, askedAt);
    return createFindRequest({ schema, read }, isKept)(once);
  };
  const writes = { ofAccounts: 0, ofOthers: 0 };
  const countWrite = ({ isAnonymous = false }: Once): void => {
    writes[isAnonymous ? 'ofOthers' : 'ofAccounts'] += 1;
    if (writes[isAnonymous ? 'ofOthers' : 'ofAccounts'] % sweepWrites !== 0) return;
    const values = [isAnonymous, isAnonymous ? anonymousRequestsMax : requestsMax];
    // Whatever fails is tried again after further writes.
    pool.write({ text: sweep, values }).catch(() => undefined);
  };
  /** `attempt` returns undefined if it has stored nothing. */
  const run = async <T>(
    once: Once,
    attempt: () => Promise<T>,
    askedAt = performance.now(),
  ): Promise<T | Repeated> => {
    let last: { readonly done: T } | undefined;
    for (let attempts = 0; attempts < attemptsMax;) {
      try {
        last = { done: await attempt() };
        if (last.done !== undefined) return (countWrite(once), last.done);
      } catch (error) {
        const isLate = performance.now() - askedAt > timeoutSeconds * 1000;
        if (isKeyInUse(error) && !isLate) continue;
        if (!isKeyTaken(error)) throw error;
      }
      const repeated = await lookUp(once, askedAt);
      if (repeated !== undefined) return repeated;
      attempts += 1;
    }
    if (last === undefined) throw busy();
    return last.done;
  };
  return {
    find: createFindRequest(
      { schema, read: (text, values) => pool.read({ text, values }) },
      isKept,
    ),
    run,
    /** Runs a statement, which stores its key too. False if it returns no row. */
    async change(once: Once | undefined, statement: Statement, askedAt?: number): Promise<Changed> {
      const change = async () => (await pool.write(statement, askedAt)).length > 0 || undefined;
      return (await (once ? run(once, change, askedAt) : change())) ?? false;
    },
  };
}

/** A statement that changes something, with its key. `before`: common expressions that it uses. */
export function withKey(
  { text, values }: Statement,
  once: Once | undefined,
  before = '',
): Statement {
  if (once === undefined) return { text: `${before && `WITH ${before}`} ${text}`, values };
  const at = values.length + 1;
  return {
    text: `WITH once AS (
      SELECT $${at}::text AS key, $${at + 1}::text AS print, $${at + 2}::boolean AS is_anonymous
    ), ${before && `${before},`} changed AS MATERIALIZED (${text}), noted AS (
      INSERT INTO inkwell.requests (key, print, is_anonymous, result)
      SELECT once.*, '' FROM once, changed LIMIT 1
    ) SELECT * FROM changed`,
    values: [...values, once.key, once.fingerprint, once.isAnonymous === true],
  };
}

/** A row to be inserted, and what it is stored once by. */
export interface Insertion {
  readonly row: NewRow;
  readonly once?: Once | undefined;
}

/** The keys of rows, as the second parameter of `noteKeys`; undefined if there are none. */
export function toKeys(insertions: readonly Insertion[]): string | undefined {
  const keys = insertions.flatMap(({ row, once }) =>
    once
      ? [{ id: row['id'], key: once.key, print: once.fingerprint, is_anonymous: once.isAnonymous }]
      : [],
  );
  return keys.length === 0 ? undefined : JSON.stringify(keys);
}

/**
 * Inserts those of the keys that are not stored. A repetition takes no number: only of two that
 * come at the same moment the second one does. `condition`: on the `id` of a row.
 */
export function noteKeys(condition = 'true'): string {
  return `given AS MATERIALIZED (
    SELECT * FROM json_to_recordset($2::text::json)
      AS row (id uuid, key text, print text, is_anonymous boolean)
  ), noted AS (
    INSERT INTO inkwell.requests (key, print, is_anonymous, result)
    SELECT key, print, coalesce(is_anonymous, false), id FROM given
    WHERE ${condition}
      AND (SELECT true FROM inkwell.requests AS stored WHERE stored.key = given.key) IS NULL
    ORDER BY key ON CONFLICT DO NOTHING RETURNING result::uuid AS id
  )`;
}

/** After `noteKeys`: the condition that the row with this id has no key, or a new one. */
export function isFirst(id: string): string {
  return `(${id} <> ALL (ARRAY(SELECT id FROM given))
    OR ${id} = ANY (ARRAY(SELECT id FROM noted)))`;
}

/** Keeps a key, as the last statement of a transaction: fails if the key is stored already. */
export function toKey({ key, fingerprint, isAnonymous = false }: Once, id: string): Statement {
  return sql`INSERT INTO inkwell.requests (key, print, is_anonymous, result)
    VALUES (${key}, ${fingerprint}, ${isAnonymous}, ${id})`;
}
