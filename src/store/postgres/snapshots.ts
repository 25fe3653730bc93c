/**
 * Tells whether anything was written, by whichever program. PostgreSQL names the transactions that
 * a statement sees: while it names the same, nothing was committed, and every read finds the same.
 */

import { sql } from './connection.ts';
import { createGather } from './gather.ts';
import type { Pool } from './pool.ts';
import { Changes } from '../changes.ts';
import type { Store } from '../store.ts';

/** A standby that takes over may use the numbers of lost transactions again: it started later. */
const statement = sql`SELECT pg_current_snapshot() AS seen, pg_postmaster_start_time() AS started`;

export function createSnapshots(pool: Pool): Required<Pick<Store, 'changes' | 'readChanges'>> {
  let last = '';
  const changes = new Changes();

  const read = async (askedAt: number): Promise<undefined> => {
    const [row] = await pool.read(statement, askedAt);
    const found = `${String(row?.['seen'])} ${String(row?.['started'])}`;
    if (found !== last) changes.countEverything();
    last = found;
  };
  const ask = createGather<undefined, undefined>({
    weightMax: 1,
    weightOf: () => 1,
    together: async (_, askedAt) => [await read(askedAt)],
    alone: (_, askedAt) => read(askedAt),
  });
  return { changes: () => changes, readChanges: () => ask(undefined) };
}
