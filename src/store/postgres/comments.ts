/** Comments in PostgreSQL, which every node hears of. */

import type { Comment } from '../model.ts';
import { createComments as createShared } from '../sql/records.ts';
import { escapeText } from '../sql/text-escape.ts';
import type { Comments } from '../store.ts';
import type { CommentFeed } from './feed.ts';
import type { PostgresContext } from './pool.ts';

export function createComments(context: PostgresContext, feed: CommentFeed): Comments {
  const { pool, createId, now } = context;
  return {
    ...createShared(context),
    watch: (listener) => feed.watch(listener),
    async add(postId, content) {
      await feed.placed();
      const comment: Comment = { id: createId(), content, createdAt: now(), postId };
      // The lock keeps the post in place until the comment is stored. It also comes before the
      // sequence is asked for a value: the feed relies on that (see feed.ts).
      const [row] = await pool.write(
        (sql) => sql`WITH post AS (
            SELECT id FROM inkwell.posts WHERE id = ${postId} FOR KEY SHARE
          )
          INSERT INTO inkwell.comments (id, post_id, content, created_at)
          SELECT ${comment.id}::uuid, post.id, ${escapeText(content)}, ${comment.createdAt}
          FROM post RETURNING seq, timeline`,
      );
      if (row === undefined) return undefined;
      const { seq, timeline } = row;
      feed.stored({ seq: Number(seq), timeline: Number(timeline), comment });
      return comment;
    },
  };
}
