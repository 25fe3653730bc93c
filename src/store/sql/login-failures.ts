/**
 * Failed logins in SQL, which all nodes count together (R21), by the clock of the database. Each
 * statement locks one row, so that there are no deadlocks.
 */

import { andThen } from '../../maybe-promise.ts';
import type { LoginFailures } from '../store.ts';
import type { Row, Value } from './rows.ts';
import type { Sql } from './sql.ts';

/** No client can push out a count: a failure adds three rows, and a node checks 3,000 a minute. */
export const rowsMax = 131_072;
/** Minimum interval between two removals of expired rows by one node. */
const removalMilliseconds = 10_000;
/** A longer window was counted before the clock was set back, and is ignored. */
const longestMilliseconds = 120_000;

export function createLoginFailures(sql: Sql): LoginFailures {
  const [table, now] = [`${sql.schema}login_failures`, sql.now];
  const isOver = `(kept.ends <= ${now} OR kept.ends > ${now} + ${longestMilliseconds})`;
  const insert = `INSERT INTO ${table} AS kept (key, failures, ends)
    VALUES ($1, 1, ${now} + $2) ON CONFLICT (key) DO UPDATE SET`;
  const count = `${insert} failures = CASE WHEN ${isOver} THEN 1 ELSE kept.failures + 1 END,
    ends = CASE WHEN ${isOver} THEN excluded.ends ELSE kept.ends END`;
  const takeTurn = `${insert} ends = CASE WHEN ${isOver} THEN excluded.ends
    ELSE kept.ends + $3 END RETURNING ends - ${now} AS remaining`;
  const remove = `DELETE FROM ${table} AS kept WHERE ${isOver} OR kept.ends <=
    (SELECT ends FROM ${table} ORDER BY ends DESC LIMIT 1 OFFSET ${rowsMax})`;
  const write = (text: string, values: readonly Value[]): Promise<readonly Row[]> =>
    sql.write('login_failures', text, values);
  let removedAt = -Infinity;
  return {
    find(keys) {
      const places = keys.map((_, at) => `$${at + 1}`).join(', ');
      const text = `SELECT key, failures, ends - ${now} AS remaining FROM ${table} AS kept
        WHERE key IN (${places}) AND NOT ${isOver}`;
      return andThen(sql.read(text, keys), (rows) => new Map(rows.map(toEntry)));
    },
    async add(keys, windowMilliseconds) {
      const changes = keys.map((key) => write(count, [key, windowMilliseconds]));
      if (performance.now() - removedAt > removalMilliseconds) {
        removedAt = performance.now();
        changes.push(write(remove, []));
      }
      await Promise.all(changes);
    },
    async forget(key) {
      await write(`DELETE FROM ${table} WHERE key = $1`, [key]);
    },
    async takeTurn(key, milliseconds) {
      const [row] = await write(takeTurn, [`turn ${key}`, milliseconds, milliseconds]);
      return Number(row?.['remaining']) - milliseconds;
    },
  };
}

function toEntry({ key, failures, remaining }: Row) {
  return [String(key), { count: Number(failures), millisecondsLeft: Number(remaining) }] as const;
}
