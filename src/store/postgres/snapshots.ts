/**
 * Tells whether anything was written, by whichever program. PostgreSQL names the transactions that
 * a statement sees: while it names the same, nothing was committed, and every read finds the same.
 */

import { sql } from './connection.ts';
import { createGather } from './gather.ts';
import type { Pool } from './pool.ts';
import { createVersions } from '../drivers.ts';
import type { Store, Versions } from '../store.ts';

/** A standby that takes over may use the numbers of lost transactions again: it started later. */
const statement = sql`SELECT pg_current_snapshot() AS seen, pg_postmaster_start_time() AS started`;

export function createSnapshots(pool: Pool): Required<Pick<Store, 'versions' | 'readVersions'>> {
  let last = '';
  /** One that was read is not changed: other requests compare with it. */
  let versions: Versions = createVersions();

  const read = async (askedAt: number): Promise<Versions> => {
    const [row] = await pool.read(statement, askedAt);
    const found = `${String(row?.['seen'])} ${String(row?.['started'])}`;
    if (found !== last) {
      last = found;
      const count = versions.posts + 1;
      versions = { posts: count, comments: count, authors: count, todos: count, articles: count };
    }
    return versions;
  };
  const ask = createGather<undefined, Versions>({
    weightMax: 1,
    weightOf: () => 1,
    together: async (_, askedAt) => [await read(askedAt)],
    alone: (_, askedAt) => read(askedAt),
  });
  return { versions: () => versions, readVersions: () => ask(undefined) };
}
