/**
 * Removes a post that has many comments. As one statement this would hold the event loop for
 * seconds. Here a second connection removes the comments in steps, in one transaction: readers see
 * all of them until its commit, and other writes wait.
 */

import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Changed, Posts } from '../store.ts';
import { createTable } from '../sql/ports.ts';
import type { Sql } from '../sql/statements.ts';
import { openConnection, rollBack } from './database.ts';
import { changeOnce } from './requests.ts';
import { createRows, type SqliteContext } from './statements.ts';
import { toStoreError } from './transactions.ts';

/** They take about 9 ms. Larger steps would delay others, and smaller ones all other writes. */
const commentsPerStep = 1_500;

export function createRemovePost(
  path: string,
  context: SqliteContext,
  posts: Pick<Posts, 'remove'>,
): Posts['remove'] {
  const { sql, changes, transactions } = context;
  const ofPost = 'FROM comments INDEXED BY comments_of_post WHERE post_id = $1';
  const removeSome = `DELETE FROM comments WHERE seq IN
    (SELECT seq ${ofPost} LIMIT ${commentsPerStep}) RETURNING id, post_id`;

  const removeInSteps = async (...args: Parameters<Posts['remove']>): Promise<Changed> => {
    const database = await openConnection(path);
    const rows = createRows(database, changes);
    try {
      database.exec('BEGIN IMMEDIATE');
      // From now until the commit no other process can write.
      transactions.countForeign();
      while (rows.run('comments', removeSome, [args[0]]).length > 0) await nextIteration();
      const own: Sql = {
        ...sql,
        write: async (...statement) => rows.run(...statement),
        writeOnce: async (once, write) => changeOnce(rows, once, write),
      };
      const removed = await createTable(own, 'posts').remove(...args);
      if (removed === true) database.exec('COMMIT');
      return removed;
    } catch (error) {
      throw toStoreError(error);
    } finally {
      rollBack(database);
      database.close();
    }
  };

  return (...args) => {
    const [more] = sql.read(`SELECT 1 ${ofPost} LIMIT 1 OFFSET ${commentsPerStep}`, [args[0]]);
    if (more === undefined) return posts.remove(...args);
    return transactions.writeElsewhere(() => removeInSteps(...args));
  };
}
