/**
 * Removes a post that has many comments. As one statement this would hold the event loop for
 * seconds. Here a second connection removes the comments in steps, in one transaction: readers see
 * all of them until its commit, and other writes wait.
 */

import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Changes } from '../changes.ts';
import { kinds } from '../shared.ts';
import type { Changed, Posts } from '../store.ts';
import { createChanges } from '../sql/changes.ts';
import type { Sql } from '../sql/statements.ts';
import { openConnection, rollBack } from './database.ts';
import { changeOnce } from './requests.ts';
import { createRows, type SqliteContext } from './statements.ts';

/** They take about 9 ms. Larger steps would delay others, and smaller ones all other writes. */
const commentsPerStep = 1_500;

export function createRemovePost(
  path: string,
  context: SqliteContext,
  posts: Pick<Posts, 'remove'>,
): Posts['remove'] {
  const { sql, changes, transactions } = context;
  const tables = ['comments', 'pending_comments'] as const;
  const ofPost = (table: string): string =>
    `FROM ${table} INDEXED BY ${table}_of_post WHERE post_id = $1`;
  const removeSome = (table: string): string => `DELETE FROM ${table} WHERE seq IN
    (SELECT seq ${ofPost(table)} LIMIT ${commentsPerStep}) RETURNING id, post_id`;

  const removeInSteps = async (...args: Parameters<Posts['remove']>): Promise<Changed> => {
    const database = await openConnection(path);
    // What is removed is counted after the commit: until then it is read, and may be cached.
    let removedPost: Parameters<Changes['count']> | undefined;
    const rows = createRows(database, {
      count(...change) {
        if (change[0] === 'posts') removedPost = change;
      },
    });
    const dataVersion = database.prepare('PRAGMA data_version');
    const versionOf = (): unknown => dataVersion.get()?.['data_version'];
    try {
      database.exec('BEGIN IMMEDIATE');
      // From now until the commit no other process can write.
      transactions.countForeign();
      const version = versionOf();
      for (const table of tables) {
        while (rows.run(table, removeSome(table), [args[0]]).length > 0) await nextIteration();
      }
      const change: Sql['change'] = async (...given) => changeOnce(rows, ...given);
      const own = createChanges({ schema: '', change }, ['posts', 'id'], kinds.posts);
      const removed = await own.remove(...args);
      if (removed !== true || removedPost === undefined) return removed;
      database.exec('COMMIT');
      transactions.skipForeign();
      // Its own commits do not change the version of a connection: another process has written.
      if (versionOf() !== version) changes.countEverything();
      changes.count(...removedPost);
      changes.count('comments', args[0]);
      return removed;
    } catch (error) {
      throw transactions.toStoreError(error);
    } finally {
      rollBack(database);
      database.close();
    }
  };

  return (...args) => {
    const isLong = (table: string): boolean =>
      sql.read(`SELECT 1 ${ofPost(table)} LIMIT 1 OFFSET ${commentsPerStep}`, [args[0]]).length > 0;
    if (!tables.some(isLong)) return posts.remove(...args);
    return transactions.writeElsewhere(() => removeInSteps(...args));
  };
}
