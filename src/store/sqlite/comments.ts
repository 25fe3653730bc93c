/** Comments in SQLite: the transaction that stores a comment also checks that the post exists. */

import type { Comment } from '../model.ts';
import { createComments as createShared } from '../sql/records.ts';
import { toRow } from '../sql/rows.ts';
import { toInsert } from '../sql/sql.ts';
import type { Comments } from '../store.ts';
import type { SqliteContext } from './statements.ts';

export function createComments(context: SqliteContext): Comments {
  const { sql, writes, createId, now } = context;
  return {
    ...createShared(context),
    add: (postId, content) =>
      writes.run(() => {
        if (sql.read('SELECT 1 FROM posts WHERE id = $1', [postId]).length === 0) return undefined;
        const comment: Comment = { id: createId(), content, createdAt: now(), postId };
        sql.run(...toInsert(sql, { table: 'comments', row: toRow(comment) }));
        return comment;
      }),
  };
}
