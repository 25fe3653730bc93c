/**
 * A short lease for changing articles (the table `article_turn`). A node near the database would
 * always win the comparison of versions against one that is farther away; a node that has lost some
 * of them takes the lease first. The lease is a row with an expiry time, not a lock: if its node
 * stops, others wait `leaseMilliseconds`. It makes changes fair; the comparison of versions, which
 * is always made, makes them correct.
 */

import { randomUUID } from 'node:crypto';
import type { Pool } from './pool.ts';
import { sql } from './connection.ts';

export type ArticleLease = ReturnType<typeof createArticleLease>;

/** By the clock of the database. */
const leaseMilliseconds = 1_000;

export function createArticleLease(pool: Pool) {
  const holder = randomUUID();
  return {
    /** Identifies this node in the table. */
    holder,
    /** Returns false if another node holds the lease. Renews it if this node does. */
    async acquire(): Promise<boolean> {
      const rows = await pool.write(
        sql`UPDATE inkwell.article_turn SET holder = ${holder},
            ends = clock_timestamp() + ${leaseMilliseconds}::int * interval '1 millisecond'
          WHERE holder = ${holder} OR ends <= clock_timestamp() RETURNING 1`,
      );
      return rows.length === 1;
    },
    /** Without a database the lease expires by itself. Never rejects. */
    async release(): Promise<void> {
      await pool
        .write(
          sql`UPDATE inkwell.article_turn SET ends = '-infinity'
            WHERE holder = ${holder}`,
        )
        .catch(() => undefined);
    },
  };
}
