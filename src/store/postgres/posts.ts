/** Posts and comments in PostgreSQL. `seq` is the order in which they came (R2). */

import type { Comment, Post } from '../model.ts';
import { groupBy, toComment, toPost, toPostRow } from '../rows.ts';
import type { Comments, Posts, PostTexts } from '../store.ts';
import { escapeText } from '../text-escape.ts';
import type { CommentFeed } from './feed.ts';
import { type Client, type PostgresContext, toIdArray } from './pool.ts';

export function createPosts({ pool, createId, now }: PostgresContext): Posts {
  return {
    list: () =>
      pool.readAll(
        (sql) => sql`SELECT id, title, content, status, created_at, author_id
          FROM inkwell.posts ORDER BY seq DESC`,
        toPost,
      ),
    find: (id) =>
      pool.readOne(
        (sql) => sql`SELECT id, title, content, status, created_at, author_id
          FROM inkwell.posts WHERE id = ${id}`,
        toPost,
      ),
    async create({ title, content, authorId }) {
      const id = createId();
      const post: Post = { id, title, content, status: 'DRAFT', createdAt: now(), authorId };
      await pool.write((sql) => sql`INSERT INTO inkwell.posts ${sql(toPostRow(post))}`);
      return post;
    },
    async update(id, { title, content }, expected) {
      const count = await pool.count(
        (sql) => sql`UPDATE inkwell.posts
          SET title = ${escapeText(title)}, content = ${escapeText(content)}
          WHERE id = ${id} ${asExpected(sql, expected)}`,
      );
      return count === 1;
    },
    async remove(id, expected) {
      // Its comments go with it, by the foreign key.
      const count = await pool.count(
        (sql) => sql`DELETE FROM inkwell.posts WHERE id = ${id} ${asExpected(sql, expected)}`,
      );
      return count === 1;
    },
    async byAuthors(ids) {
      const posts = await pool.readAll(
        (sql) => sql`SELECT id, title, content, status, created_at, author_id FROM inkwell.posts
          WHERE author_id IN (SELECT unnest(${toIdArray(ids)}::text::uuid[])) ORDER BY seq DESC`,
        toPost,
      );
      return groupBy(posts, ({ authorId }) => authorId ?? '');
    },
  };
}

/** Compared in the statement that writes: no other node's change comes between. */
function asExpected(sql: Client, texts: PostTexts | undefined): ReturnType<Client> {
  if (texts === undefined) return sql``;
  return sql`AND title = ${escapeText(texts.title)} AND content = ${escapeText(texts.content)}`;
}

export function createComments(context: PostgresContext, feed: CommentFeed): Comments {
  const { pool, createId, now } = context;
  return {
    watch: (listener) => feed.watch(listener),
    find: (id) =>
      pool.readOne(
        (sql) => sql`SELECT id, post_id, content, created_at
          FROM inkwell.comments WHERE id = ${id}`,
        toComment,
      ),
    async add(postId, content) {
      const comment: Comment = { id: createId(), content, createdAt: now(), postId };
      // The lock keeps the post in place until the comment is stored. It also comes before the
      // sequence is asked for a value: the feed relies on that (see feed.ts).
      const [row] = await pool.write(
        (sql) => sql`WITH post AS (
            SELECT id FROM inkwell.posts WHERE id = ${postId} FOR KEY SHARE
          )
          INSERT INTO inkwell.comments (id, post_id, content, created_at)
          SELECT ${comment.id}::uuid, post.id, ${escapeText(content)}, ${comment.createdAt}
          FROM post RETURNING seq`,
      );
      if (row === undefined) return undefined;
      feed.stored(Number(row['seq']), comment);
      return comment;
    },
    async list(postId) {
      const rows = await pool.read(
        (sql) => sql`SELECT comment.id, post.id AS post_id, content, comment.created_at
          FROM (SELECT id FROM inkwell.posts WHERE id = ${postId}) AS post
          LEFT JOIN inkwell.comments AS comment ON comment.post_id = post.id
          ORDER BY comment.seq`,
      );
      if (rows.length === 0) return undefined;
      // A post without comments is one row without a comment.
      return rows.filter((row) => row['id'] !== null).map(toComment);
    },
    async byPosts(ids) {
      const comments = await pool.readAll(
        (sql) => sql`SELECT id, post_id, content, created_at FROM inkwell.comments
          WHERE post_id IN (SELECT unnest(${toIdArray(ids)}::text::uuid[])) ORDER BY seq`,
        toComment,
      );
      return groupBy(comments, ({ postId }) => postId);
    },
  };
}
