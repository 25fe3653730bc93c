/**
 * Writes under a key, in a transaction of SQLite (R40).
 *
 * 1. The key is stored, with the id that a new record is to get. If the key is stored already,
 *    nothing is written.
 * 2. A key that is a day old is replaced.
 * 3. The write is done. If it stores nothing, its key is removed: both are in one transaction.
 * 4. With every hundredth key, the 200 oldest of accounts and of clients without a token are
 *    checked: what is a day old, or beyond the limit of its kind, is removed.
 *
 *     the key is      request or write   result
 *     stored          same request       that of the first write
 *     stored          another request    idempotency_key_reused: only this write fails
 *     absent or old   stores             that of the write; the key stays
 *     absent or old   stores nothing     that of the write; the key is removed
 *
 * For example, two equal POSTs of one batch: BEGIN, INSERT requests (k, 1), INSERT posts (1); the
 * second POST finds k with the id 1. COMMIT; both POSTs are acknowledged with the id 1.
 */

import { type Row, toFirstWrite } from '../sql/rows.ts';
import type { Write } from '../sql/transaction.ts';
import type { Changed } from '../store.ts';
import {
  anonymousRequestsMax,
  idOf,
  type Once,
  type Repeated,
  requestsMax,
  toRepeated,
} from '../once.ts';
import type { Statement } from './database.ts';

export const isKept = 'made > unixepoch() - 86400';

const keep = `INSERT INTO requests (key, print, result, is_anonymous) VALUES ($1, $2, $3, $4)
  ON CONFLICT DO NOTHING`;
const find = `SELECT print, result FROM requests WHERE key = $1 AND ${isKept}`;
const forget = 'DELETE FROM requests WHERE key = $1';
const setResult = 'UPDATE requests SET result = $1 WHERE key = $2';
const sweepWrites = 100;
const toSweep = (isAnonymous: 0 | 1, max: number): string => {
  const ofKind = `FROM requests WHERE is_anonymous = ${isAnonymous}`;
  // Numbers may be missing in between: their span bounds the keys, which are counted beyond it.
  return `DELETE FROM requests
    WHERE seq IN (SELECT seq ${ofKind} ORDER BY seq LIMIT ${2 * sweepWrites})
      AND (NOT ${isKept} OR seq <= (SELECT CASE WHEN max(seq) - min(seq) >= ${max}
        THEN (SELECT seq ${ofKind} ORDER BY seq DESC LIMIT 1 OFFSET ${max}) END ${ofKind}))`;
};
const sweeps = [toSweep(0, requestsMax), toSweep(1, anonymousRequestsMax)];

interface Rows {
  readonly prepare: (text: string) => Statement;
  readonly run: (...statement: Write) => readonly Row[];
}

/**
 * Does a write of the open transaction once. The write returns false or undefined if it stored
 * nothing. `id`: the id of the new record, if it is known before.
 */
export function runOnce<T>(
  { prepare, run }: Rows,
  { once, id = '' }: { readonly once: Once | undefined; readonly id?: string },
  write: () => T,
): T | Repeated {
  if (once === undefined) return write();
  const { key, fingerprint } = once;
  const insert = () => prepare(keep).run(key, fingerprint, id, Number(once.isAnonymous === true));
  let kept = insert();
  if (Number(kept.changes) === 0) {
    const [first] = run('requests', find, [key]);
    if (first !== undefined) return toRepeated(toFirstWrite(first), fingerprint);
    run('requests', forget, [key]);
    kept = insert();
  }
  if (Number(kept.lastInsertRowid) % sweepWrites === 0) {
    for (const sweep of sweeps) run('requests', sweep, []);
  }
  let result;
  try {
    result = write();
  } finally {
    const made = idOf(result);
    if (result === undefined || result === false) run('requests', forget, [key]);
    else if (made !== id) run('requests', setResult, [made, key]);
  }
  return result;
}

/** Runs a statement, once under a key; false if it returns no row. */
export function changeOnce(rows: Rows, once: Once | undefined, write: Write): Changed {
  return runOnce(rows, { once }, () => rows.run(...write).length > 0);
}
