/** Comments in SQLite. */

import { createListening, toComments } from '../shared.ts';
import { isRepeated } from '../once.ts';
import type { Comment } from '../model.ts';
import { createTable } from '../sql/ports.ts';
import { namesOf, toCells, toRecord, toRow, type Value } from '../sql/rows.ts';
import { createReadAfter } from '../sql/comments-after.ts';
import type { Comments, Once, Repeated } from '../store.ts';
import { isSqliteError, sqliteForeignKey } from './database.ts';
import { runOnce } from './requests.ts';
import type { SqliteContext } from './statements.ts';

/** Runs a write in a transaction, once under its key (R40). */
function createWrite({ sql, transactions }: Pick<SqliteContext, 'sql' | 'transactions'>) {
  return <T>(once: Once | undefined, write: () => T): Promise<T | Repeated> =>
    transactions.write(() => runOnce(sql, { once }, write));
}

const columns = namesOf('comments');
const take = `DELETE FROM pending_comments WHERE id = $1 RETURNING ${columns.join()}`;
const settle = `INSERT INTO comments (${columns.join()}, was_pending)
  VALUES (${columns.map((_, at) => `$${at + 1}`).join()}, 1) RETURNING id, post_id, seq`;
const among = (parameter: string): string => `id IN (SELECT value FROM json_each(${parameter}))`;
const countThere = `SELECT (SELECT count(*) FROM comments WHERE ${among('$1')})
  + (SELECT count(*) FROM pending_comments WHERE ${among('$2')}) AS count`;

/** The foreign key of a comment tells that its post does not exist. */
export function createComments(context: SqliteContext): Comments {
  const { sql, createId, now } = context;
  const inTransaction = createWrite(context);
  const readAfter = createReadAfter(sql);
  const listening = createListening();
  const ports = toComments(createTable(sql, 'comments'), createTable(sql, 'pending_comments'));
  return {
    ...ports,
    placeOf(id) {
      const [row] = sql.read('SELECT seq FROM comments WHERE id = $1', [id]);
      return row && Number(row['seq']);
    },
    after: (place, range) => readAfter(Number(place), range),
    watch: listening.watch,
    async add(postId, content, { once, name = null, authorId = null, isPending = false } = {}) {
      const added = await inTransaction(once, () => {
        const made = { id: createId(), content, createdAt: now(), postId };
        const comment: Comment = { ...made, name, authorId };
        try {
          const table = isPending ? 'pending_comments' : 'comments';
          const [row] = sql.put(table, toRow(comment), 'RETURNING seq');
          return { id: comment.id, comment, place: Number(row?.['seq']) };
        } catch (error) {
          // Only this statement is rolled back.
          if (isSqliteError(error) && error.errcode === sqliteForeignKey) return undefined;
          throw error;
        }
      });
      if (added === undefined || isRepeated(added)) return added;
      if (!isPending) listening.tell(added);
      return added.comment;
    },
    async approve(id, { once } = {}) {
      const approved = await inTransaction(once, () => {
        const [row] = sql.run('pending_comments', take, [id]);
        if (row === undefined) return ports.find(id) && true;
        const cells = toCells('comments', row);
        const [placed] = sql.run('comments', settle, cells as Value[]);
        return { comment: toRecord.comments(cells), place: Number(placed?.['seq']) };
      });
      if (approved === undefined) return false;
      if (approved === true || isRepeated(approved)) return approved;
      listening.tell(approved);
      return true;
    },
    remove: (ids, { once } = {}) =>
      inTransaction(once, () => {
        const given = JSON.stringify(ids);
        const [there] = sql.read(countThere, [given, given]);
        if (Number(there?.['count']) < ids.length) return false;
        for (const table of ['comments', 'pending_comments']) {
          const text = `DELETE FROM ${table} WHERE ${among('$1')} RETURNING id, post_id`;
          sql.run(table, text, [given]);
        }
        return true;
      }),
  };
}
