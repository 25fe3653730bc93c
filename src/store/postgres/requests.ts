/**
 * Writes under a key, in PostgreSQL (R40). Each is one statement, which stores its key as well.
 *
 * 1. Records are locked first, then keys in their order, then numbers are taken: statements that
 *    wait for one another never wait in a circle.
 * 2. New records are inserted with their keys. A key that is stored already fails the statement;
 *    several records are then inserted by another statement: the keys that are not stored, and
 *    their records. The keys of comments are inserted before the comments get their numbers.
 * 3. Changes: the record is changed, and then the key inserted. A key that is stored already fails
 *    the statement, which undoes the change. Without a change no key is inserted.
 * 4. If an open transaction has inserted the key, the statement waits until that transaction ends.
 *    After the time limit of a statement the request is refused (`request_in_progress`).
 * 5. If nothing was stored, the key is looked up by a statement of its own, which sees what was
 *    committed meanwhile and removes a key that is a day old. Then the write is tried again.
 * 6. After every hundredth write under a key, the oldest keys are checked: those that are a day old
 *    or beyond the limit are removed.
 *
 *     attempt                    key, looked up      result
 *     stored                     –                   that of the write
 *     key was stored             same request        that of the first write
 *     key was stored             another request     idempotency_key_reused
 *     key was stored             a day old: removed  that of a second attempt
 *     no such record             not stored          that of the write: nothing stored
 *     no such record (any more)  same request        that of the first, which removed it
 *
 * For example, nodes A and B get the same POST, and A commits between the two statements of B:
 *
 *     A: INSERT posts (1), INSERT requests (k)   commits
 *     B: INSERT posts (2), INSERT requests (k) … waits for A … fails, so no post; then finds k: 1
 */

import { createFindRequest } from '../sql/ports.ts';
import type { NewRow } from '../sql/rows.ts';
import type { Sql } from '../sql/statements.ts';
import type { DriverOptions } from '../store.ts';
import { type Once, type Repeated, requestsMax } from '../once.ts';
import type { Statement } from './connection.ts';
import { isKeyInUse, isKeyTaken } from './faults.ts';
import type { Pool } from './pool.ts';
import { type Versions, xid } from './versions.ts';

export type PostgresRequests = ReturnType<typeof createRequests>;

const isKept = `made > now() - interval '1 day'`;
const attemptsMax = 2;
/** After each `sweepWrites` writes under keys, the `sweptMax` oldest keys are checked. */
const sweepWrites = 100;
const sweptMax = 200;

const mayGo = `(NOT ${isKept} OR seq <= (SELECT max(seq) FROM inkwell.requests) - ${requestsMax})`;
// The oldest key tells whether there is anything to remove. Between two numbers: a plan for a list
// of them, made while there are few keys, would read all keys for as long as it is used.
const oldest = 'FROM inkwell.requests ORDER BY seq LIMIT';
const last = `SELECT max(seq) FROM (SELECT seq ${oldest} ${sweptMax}) AS some_keys`;
const sweep = `DELETE FROM inkwell.requests WHERE ${mayGo}
    AND seq BETWEEN (SELECT seq ${oldest} 1) AND (${last} WHERE (SELECT ${mayGo} ${oldest} 1))
  RETURNING ${xid}`;

interface Deps {
  readonly pool: Pool;
  readonly versions: Pick<Versions, 'track'>;
  readonly timeoutSeconds: DriverOptions['timeoutSeconds'];
}

export function createRequests({ pool, versions, timeoutSeconds }: Deps) {
  const schema = 'inkwell.';
  const removeOld = `WITH ended AS (DELETE FROM inkwell.requests WHERE key = $1 AND NOT ${isKept})`;
  const lookUp = (once: Once, askedAt: number) => {
    // A write, because the statement also removes a key that is a day old.
    const read: Sql['read'] = (text, values) =>
      pool.write({ text: `${removeOld} ${text}`, values }, askedAt);
    return createFindRequest({ schema, read }, isKept)(once);
  };
  let writes = 0;
  const countWrite = (): void => {
    writes += 1;
    if (writes % sweepWrites !== 0) return;
    // Whatever fails is tried again after further writes.
    versions.track(pool.write({ text: sweep, values: [] })).catch(() => undefined);
  };
  return {
    find: createFindRequest(
      { schema, read: (text, values) => pool.read({ text, values }) },
      isKept,
    ),
    /** `attempt` returns undefined if it has stored nothing. */
    async run<T>(
      once: Once,
      attempt: () => Promise<T | undefined>,
      askedAt = performance.now(),
    ): Promise<T | Repeated | undefined> {
      for (let attempts = 0; attempts < attemptsMax;) {
        try {
          const done = await attempt();
          if (done !== undefined) return (countWrite(), done);
        } catch (error) {
          const isLate = performance.now() - askedAt > timeoutSeconds * 1000;
          if (isKeyInUse(error) && !isLate) continue;
          if (!isKeyTaken(error)) throw error;
        }
        const repeated = await lookUp(once, askedAt);
        if (repeated !== undefined) return repeated;
        attempts += 1;
      }
      return undefined;
    },
  };
}

/**
 * A statement that changes something, with its key. `before`: common table expressions that the
 * statement uses. `result`: an expression for the id of a new record.
 */
export function withKey(
  { text, values }: Statement,
  once: Once,
  { before = '', result = `''` } = {},
): Statement {
  const at = values.length + 1;
  return {
    text: `WITH ${before}changed AS MATERIALIZED (${text}), noted AS (
      INSERT INTO inkwell.requests (key, print, result)
      SELECT $${at}, $${at + 1}, ${result} FROM changed LIMIT 1
    ) SELECT * FROM changed`,
    values: [...values, once.key, once.fingerprint],
  };
}

/** A row to be inserted, and what it is stored once by. */
export interface Insertion {
  readonly row: NewRow;
  readonly once?: Once | undefined;
}

/** The columns of a key that `toKeyValues` returns. */
export const keyColumns = ['key', 'print', 'result'];

/**
 * The keys of new records and their ids, column by column. The keys are sorted: statements that
 * wait never wait in a circle.
 */
export function toKeyValues(insertions: readonly Insertion[]): Statement['values'] {
  const noted = insertions.map(({ row, once: { key = '', fingerprint = '' } = {} }) => {
    return { key, fingerprint, id: String(row['id']) };
  });
  noted.sort((one, other) => (one.key < other.key ? -1 : 1));
  return (['key', 'fingerprint', 'id'] as const).map((name) => noted.map((each) => each[name]));
}

/**
 * Inserts the keys of new records, one after the other, as `first`, which has the ids of these
 * records; fails if one of the keys is stored already. `rest`: what follows the FROM clause.
 */
export function noteKeys(rest = ''): string {
  return `first AS MATERIALIZED (
    INSERT INTO inkwell.requests (key, print, result) SELECT key, print, id
    FROM unnest($2::text[], $3::text[], $4::text[]) AS given (key, print, id)${rest}
    RETURNING result
  )`;
}

/** The end of `rest`, with which keys that are stored already are left out. */
export const ifNew = ' ON CONFLICT (key) DO NOTHING';
/** The condition on the id of a record that is to be stored. */
export const isFirst = '= ANY (ARRAY(SELECT result::uuid FROM first))';
