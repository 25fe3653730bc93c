/**
 * A short lease on changing articles (the table `article_turn`). A node near the database wins each
 * comparison of versions against one that is farther away; a node that has lost some of them takes
 * the lease first. It is a row with an end and no lock: a node that stops while it holds the lease
 * delays the others for `leaseMilliseconds`. The lease makes changes fair; the comparison of
 * versions, which is made in any case, keeps them correct.
 */

import { randomUUID } from 'node:crypto';
import type { Pool } from './pool.ts';

export interface ArticleLease {
  /** Names this node in the table. */
  readonly holder: string;
  /** False while another node holds it. A node that holds it already renews it. */
  acquire(): Promise<boolean>;
  /** Without a database the lease ends by itself. Never rejects. */
  release(): Promise<void>;
}

/** By the clock of the database. */
const leaseMilliseconds = 1_000;

export function createArticleLease(pool: Pool): ArticleLease {
  const holder = randomUUID();
  return {
    holder,
    async acquire() {
      const count = await pool.count(
        (sql) => sql`UPDATE inkwell.article_turn SET holder = ${holder},
            ends = clock_timestamp() + ${leaseMilliseconds}::int * interval '1 millisecond'
          WHERE holder = ${holder} OR ends <= clock_timestamp()`,
      );
      return count === 1;
    },
    async release() {
      await pool
        .write(
          (sql) => sql`UPDATE inkwell.article_turn SET ends = '-infinity'
            WHERE holder = ${holder}`,
        )
        .catch(() => undefined);
    },
  };
}
