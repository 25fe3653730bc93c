/** Comments in PostgreSQL. `feed.ts` tells every node of each. */

import type { Stored } from './comment-order.ts';
import type { CommentFeed } from './feed.ts';
import type { Comment } from '../model.ts';
import type { Pool } from './pool.ts';
import { createLoader } from './batch.ts';
import { type PostgresContext, toInserts } from './statements.ts';
import { sql, type Statement } from './connection.ts';
import { toComments } from '../shared.ts';
import { createTable } from '../sql/ports.ts';
import { type NewRow, toRow } from '../sql/rows.ts';
import type { Comments } from '../store.ts';

export function createComments(context: PostgresContext, feed: CommentFeed): Comments {
  const { pool, createId, now } = context;
  const insert = createLoader(toInserts((rows, askedAt) => insertAll(pool, rows, askedAt)));
  return {
    ...toComments(createTable(context.sql, 'comments')),
    watch: (listener) => feed.watch(listener),
    ready: () => feed.ready(),
    async add(postId, content) {
      await feed.ready();
      const comment: Comment = { id: createId(), content, createdAt: now(), postId };
      const place = await insert(toRow(comment));
      if (place === undefined) return undefined;
      feed.stored({ ...place, comment });
      return comment;
    },
  };
}

type Place = Pick<Stored, 'seq' | 'timeline'>;

/** Returns the place of each comment; undefined if there is no such post. */
async function insertAll(
  pool: Pool,
  rows: readonly NewRow[],
  askedAt: number,
): Promise<readonly (Place | undefined)[]> {
  const stored = await pool.write(
    rows.length === 1 ? toInsert(rows[0]) : toInsertAll(rows),
    askedAt,
  );
  const places = new Map(
    stored.map(({ id, seq, timeline }) => [id, { seq: Number(seq), timeline: Number(timeline) }]),
  );
  return rows.map(({ id }) => places.get(id));
}

/**
 * Stores one comment, in half the time of the statement for several. The lock keeps the post until
 * the comment is stored. It must be taken before the number from the sequence: the feed relies on
 * that (see `feed.ts`).
 */
function toInsert(row: NewRow = {}): Statement {
  const { id = null, post_id = null, content = null, created_at = null } = row;
  return sql`WITH post AS MATERIALIZED (
      SELECT id FROM inkwell.posts WHERE id = ${post_id} FOR KEY SHARE
    )
    INSERT INTO inkwell.comments (id, post_id, content, created_at, timeline)
    SELECT ${id}::uuid, id, ${content}, ${created_at}, (SELECT inkwell.timeline())
    FROM post RETURNING id, seq, timeline`;
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
      ORDER BY ordinality RETURNING id, seq, timeline`;
}
