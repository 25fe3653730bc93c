/**
 * Removes a post that has many comments. As one statement this would hold the event loop for
 * seconds. Here a second connection removes the comments in steps, in one transaction: readers see
 * all of them until its commit, and other writes wait.
 */

import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Posts } from '../store.ts';
import { createTable } from '../sql/ports.ts';
import { openConnection, rollBack } from './database.ts';
import { createStatements, type SqliteContext } from './statements.ts';
import { toStoreError } from './transactions.ts';

const commentsPerStep = 500;

export function createRemovePost(
  path: string,
  context: SqliteContext,
  posts: Pick<Posts, 'remove'>,
): Posts['remove'] {
  const { sql, changes, transactions } = context;
  const ofPost = 'FROM comments INDEXED BY comments_of_post WHERE post_id = $1';
  const removeSome = `DELETE FROM comments WHERE seq IN
    (SELECT seq ${ofPost} LIMIT ${commentsPerStep}) RETURNING id, post_id`;
  /** One at a time: each holds the write lock. */
  let last: Promise<unknown> = Promise.resolve();

  const removeInSteps = async (...args: Parameters<Posts['remove']>): Promise<boolean> => {
    const database = await openConnection(path);
    try {
      const own = createStatements({ database, changes, transactions });
      const write: typeof sql.write = (...statement) => Promise.resolve(own.run(...statement));
      database.exec('BEGIN IMMEDIATE');
      while (own.run('comments', removeSome, [args[0]]).length > 0) await nextIteration();
      const isRemoved = await createTable({ ...own, write }, 'posts').remove(...args);
      if (isRemoved) database.exec('COMMIT');
      return isRemoved;
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
    const removed = last.then(() => transactions.defer(() => removeInSteps(...args)));
    last = removed.catch(() => undefined);
    return removed;
  };
}
