/**
 * Writes under a key, in a transaction of SQLite (R40).
 *
 * 1. A key that was kept in the last 24 hours has its write done: nothing is written.
 * 2. Otherwise the write is done. If it stored something, its key is kept in the same transaction.
 * 3. Then the two oldest keys go if they are a day old or beyond the limit: more than come.
 *
 *     key kept       same request      result of the first
 *     key kept       another request   idempotency_key_reused: only this write fails
 *     not, or old    stored            that of the write; the key is kept, or anew
 *     not, or old    nothing stored    that of the write; no key is kept
 *
 * For example, two equal POSTs of one batch: BEGIN, INSERT posts (1), INSERT requests (k, 1), and
 * then k is found: 1. COMMIT; both are acknowledged with 1.
 */

import { type Row, toFirst } from '../sql/rows.ts';
import type { Write } from '../sql/statements.ts';
import type { Changed } from '../store.ts';
import { idOf, type Once, type Repeated, requestsMax, toRepeated } from '../once.ts';

export const isKept = 'made > unixepoch() - 86400';

const find = `SELECT print, result FROM requests WHERE key = $1 AND ${isKept}`;
// A key that is replaced is a day old.
const keep = 'INSERT OR REPLACE INTO requests (key, print, result) VALUES ($1, $2, $3)';
const sweep = `DELETE FROM requests
  WHERE seq IN (SELECT seq FROM requests ORDER BY seq LIMIT 2)
    AND (NOT ${isKept} OR seq <= (SELECT max(seq) FROM requests) - ${requestsMax})`;

interface Rows {
  readonly run: (...statement: Write) => readonly Row[];
}

/** Does a write of the open transaction once; false and undefined mean that it stored nothing. */
export function runOnce<T>({ run }: Rows, once: Once | undefined, write: () => T): T | Repeated {
  if (once === undefined) return write();
  const { key, print } = once;
  const [row] = run('requests', find, [key]);
  if (row !== undefined) return toRepeated(toFirst(row), print);
  const result = write();
  if (result === undefined || result === false) return result;
  run('requests', keep, [key, print, idOf(result)]);
  run('requests', sweep, []);
  return result;
}

/** Runs a statement once; false if it returns no row. */
export function changeOnce(rows: Rows, once: Once, write: Write): Changed {
  return runOnce(rows, once, () => rows.run(...write).length > 0);
}
