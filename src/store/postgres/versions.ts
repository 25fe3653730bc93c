/**
 * Tells whether anything was written, by whichever program. PostgreSQL names the transactions that
 * a statement sees: while it names the same, nothing was committed, and every read finds the same.
 */

import { sql } from './connection.ts';
import { createLoader } from './batch.ts';
import type { Pool } from './pool.ts';
import { Changes } from '../changes.ts';
import type { Store } from '../store.ts';

/**
 * In recovery the running transactions are not named, so that two states can look alike: a standby
 * gets a new answer each time. A standby that takes over, and a server that has lost asynchronous
 * commits in a crash, use the numbers of lost transactions again: the former started later, the
 * latter has made a checkpoint since.
 */
const statement = sql`SELECT concat_ws(' ',
  CASE WHEN pg_is_in_recovery() THEN clock_timestamp()::text ELSE pg_current_snapshot()::text END,
  pg_postmaster_start_time(), (pg_control_checkpoint()).checkpoint_lsn) AS seen`;

type Versions = 'changes' | 'readChanges' | 'readsSent';

export function createVersions(pool: Pool): Required<Pick<Store, Versions>> {
  let last = '';
  const changes = new Changes();

  const read = async (askedAt: number): Promise<undefined> => {
    const [row] = await pool.read(statement, askedAt);
    const found = String(row?.['seen']);
    if (found !== last) changes.countEverything();
    last = found;
  };
  const ask = createLoader<undefined, undefined>({
    keyOf: () => 'all ask for the same',
    costMax: 1,
    costOf: () => 1,
    loadMany: async (_, askedAt) => [await read(askedAt)],
    loadOne: (_, askedAt) => read(askedAt),
  });
  return {
    changes: () => changes,
    readChanges: () => ask(undefined),
    readsSent: () => pool.reads,
  };
}
