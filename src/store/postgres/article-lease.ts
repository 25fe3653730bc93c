/**
 * The turn to change articles, which one node has for a moment. A node near the database wins each
 * comparison of versions against one that is farther away; who has lost some of them takes the turn
 * first. It is a row with an end and no lock: a node that stops while it has the turn holds up the
 * changes of others for `turnMilliseconds`. It makes changes fair; what keeps them right is the
 * comparison of versions, which is made all the same.
 */

import { randomUUID } from 'node:crypto';
import type { Pool } from './pool.ts';

export interface ArticleTurn {
  /** Of this node, among those that want the turn. */
  readonly holder: string;
  /** False while another node has it. Once more: a node that has it has it for longer. */
  take(): Promise<boolean>;
  /** Where the database cannot be told, the turn ends by itself. Never rejects. */
  giveBack(): Promise<void>;
}

/** By the clock of the database. */
const turnMilliseconds = 1_000;

export function createArticleTurn(pool: Pool): ArticleTurn {
  const holder = randomUUID();
  return {
    holder,
    async take() {
      const { count } = await pool.write(
        (sql) => sql`UPDATE inkwell.article_turn SET holder = ${holder},
            ends = clock_timestamp() + ${turnMilliseconds}::int * interval '1 millisecond'
          WHERE holder = ${holder} OR ends <= clock_timestamp()`,
      );
      return count === 1;
    },
    async giveBack() {
      await pool
        .write(
          (sql) => sql`UPDATE inkwell.article_turn SET ends = '-infinity'
            WHERE holder = ${holder}`,
        )
        .catch(() => undefined);
    },
  };
}
