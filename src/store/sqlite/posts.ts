/** Posts and comments in SQLite. `seq` is the order in which they came (R2). */

import { groupBy } from '../group-by.ts';
import type { Row } from './database.ts';
import type { SqliteContext } from './writes.ts';
import type { Comment, Post } from '../model.ts';
import type { Comments, Posts } from '../store.ts';
import { escapeText, unescapeText } from '../text-escape.ts';

const postColumns = 'id, title, content, status, created_at, author_id';
const commentColumns = 'id, post_id, content, created_at';

export function createPosts({ database, writes, createId, now }: SqliteContext): Posts {
  const list = database.prepare(`SELECT ${postColumns} FROM posts ORDER BY seq DESC`);
  const find = database.prepare(`SELECT ${postColumns} FROM posts WHERE id = ?`);
  const insert = database.prepare(`INSERT INTO posts (${postColumns}) VALUES (?, ?, ?, ?, ?, ?)`);
  const update = database.prepare('UPDATE posts SET title = ?, content = ? WHERE id = ?');
  const remove = database.prepare('DELETE FROM posts WHERE id = ?');
  const byAuthors = database.prepare(
    `SELECT ${postColumns} FROM posts
     WHERE author_id IN (SELECT value FROM json_each(?)) ORDER BY seq DESC`,
  );

  return {
    list: () => list.all().map(toPost),
    find(id) {
      const row = find.get(id);
      return row && toPost(row);
    },
    create({ title, content, authorId }) {
      return writes.run(() => {
        const id = createId();
        const post: Post = { id, title, content, status: 'DRAFT', createdAt: now(), authorId };
        const { status, createdAt } = post;
        insert.run(id, escapeText(title), escapeText(content), status, createdAt, authorId);
        return post;
      });
    },
    update(id, { title, content }) {
      return writes.run(() => {
        return Number(update.run(escapeText(title), escapeText(content), id).changes) === 1;
      });
    },
    // Its comments go with it, by the foreign key.
    remove: (id) => writes.run(() => Number(remove.run(id).changes) === 1),
    byAuthors: (ids) => {
      const posts = byAuthors.all(JSON.stringify(ids)).map(toPost);
      return groupBy(posts, ({ authorId }) => authorId ?? '');
    },
  };
}

export function createComments({ database, writes, createId, now }: SqliteContext): Comments {
  const hasPost = database.prepare('SELECT 1 FROM posts WHERE id = ?');
  const find = database.prepare(`SELECT ${commentColumns} FROM comments WHERE id = ?`);
  const list = database.prepare(
    `SELECT ${commentColumns} FROM comments WHERE post_id = ? ORDER BY seq`,
  );
  const insert = database.prepare(`INSERT INTO comments (${commentColumns}) VALUES (?, ?, ?, ?)`);
  const byPosts = database.prepare(
    `SELECT ${commentColumns} FROM comments
     WHERE post_id IN (SELECT value FROM json_each(?)) ORDER BY seq`,
  );

  return {
    find(id) {
      const row = find.get(id);
      return row && toComment(row);
    },
    add(postId, content) {
      return writes.run(() => {
        if (hasPost.get(postId) === undefined) return undefined;
        const comment: Comment = { id: createId(), content, createdAt: now(), postId };
        insert.run(comment.id, postId, escapeText(content), comment.createdAt);
        return comment;
      });
    },
    list(postId) {
      const rows = list.all(postId);
      if (rows.length === 0 && hasPost.get(postId) === undefined) return undefined;
      return rows.map(toComment);
    },
    byPosts: (ids) => {
      const comments = byPosts.all(JSON.stringify(ids)).map(toComment);
      return groupBy(comments, ({ postId }) => postId);
    },
  };
}

/** The schema has these columns as texts, and only `create` writes a status. */
function toPost(row: Row): Post {
  return {
    id: String(row['id']),
    title: unescapeText(String(row['title'])),
    content: unescapeText(String(row['content'])),
    status: row['status'] as Post['status'],
    createdAt: String(row['created_at']),
    authorId: row['author_id'] as string | null,
  };
}

function toComment(row: Row): Comment {
  return {
    id: String(row['id']),
    content: unescapeText(String(row['content'])),
    createdAt: String(row['created_at']),
    postId: String(row['post_id']),
  };
}
