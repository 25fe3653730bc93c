/** Comments in PostgreSQL. `feed.ts` tells every node of each. */

import type { CommentFeed } from './feed.ts';
import type { Comment } from '../model.ts';
import { createLoader } from './batch.ts';
import { type PostgresContext, toInserts } from './statements.ts';
import { sql, type Statement } from './connection.ts';
import { toComments } from '../shared.ts';
import { createTable } from '../sql/ports.ts';
import { type NewRow, toRow } from '../sql/rows.ts';
import type { Comments } from '../store.ts';

export function createComments(context: PostgresContext, feed: CommentFeed): Comments {
  const { pool, versions, createId, now } = context;
  const insert = createLoader(
    toInserts(async (rows, askedAt) => {
      const statement = rows.length === 1 ? toInsert(rows[0]) : toInsertAll(rows);
      const added = await versions.track(pool.write(statement, askedAt), 'comments');
      const stored = new Map(
        added.map(({ id, seq, timeline }) => {
          return [id, { seq: Number(seq), timeline: Number(timeline) }];
        }),
      );
      // Undefined if there is no such post.
      return rows.map(({ id }) => stored.get(id));
    }),
  );
  return {
    ...toComments(createTable(context.sql, 'comments')),
    watch: (listener) => feed.watch(listener),
    ready: () => feed.ready(),
    async add(postId, content) {
      await feed.ready();
      const comment: Comment = { id: createId(), content, createdAt: now(), postId };
      const numbered = await insert(toRow(comment));
      if (numbered === undefined) return undefined;
      feed.stored({ ...numbered, comment });
      return comment;
    },
  };
}

/**
 * Stores one comment, in half the time of the statement for several. The lock keeps the post until
 * the comment is stored. The statement takes the lock, and with it a transaction id, before a
 * number: gaps rely on that (rule 3 of `comment-order.ts`).
 */
function toInsert(row: NewRow = {}): Statement {
  const { id = null, post_id = null, content = null, created_at = null } = row;
  return sql`WITH post AS MATERIALIZED (
      SELECT id FROM inkwell.posts WHERE id = ${post_id} FOR KEY SHARE
    )
    INSERT INTO inkwell.comments (id, post_id, content, created_at, timeline)
    SELECT ${id}::uuid, id, ${content}, ${created_at}, (SELECT inkwell.timeline())
    FROM post RETURNING id, post_id, seq, timeline, pg_current_xact_id()::text AS xid`;
}

/** The rows are sorted so that each lock is taken before the first number. */
function toInsertAll(rows: readonly NewRow[]): Statement {
  return sql`WITH added AS MATERIALIZED (
        SELECT * FROM json_populate_recordset(
          null::inkwell.comments, ${JSON.stringify(rows)}::text::json) WITH ORDINALITY
      ), post AS MATERIALIZED (
        SELECT id FROM inkwell.posts WHERE id = ANY (ARRAY(SELECT post_id FROM added))
        ORDER BY id FOR KEY SHARE
      )
      INSERT INTO inkwell.comments (id, post_id, content, created_at, timeline)
      SELECT added.id, post.id, content, created_at, (SELECT inkwell.timeline())
      FROM added JOIN post ON post.id = post_id
      ORDER BY ordinality RETURNING id, post_id, seq, timeline, pg_current_xact_id()::text AS xid`;
}
