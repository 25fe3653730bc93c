/** Posts and comments in SQLite. `seq` is the order in which they came (R2). */

import type { Comment, Post } from '../model.ts';
import { groupBy, toComment, toCommentRow, toPost, toPostRow } from '../rows.ts';
import type { Comments, Posts, PostTexts } from '../store.ts';
import { escapeText } from '../text-escape.ts';
import { createChange, createInsert, createSelect } from './statements.ts';
import type { SqliteContext } from './writes.ts';

export function createPosts(context: SqliteContext): Posts {
  const { database, writes, createId, now } = context;
  const select = createSelect(database, 'posts', toPost);
  const list = select('ORDER BY seq DESC');
  const find = select('WHERE id = ?');
  const byAuthors = select('WHERE author_id IN (SELECT value FROM json_each(?)) ORDER BY seq DESC');
  const insert = createInsert(context, 'posts');
  const update = createChange(context, [
    'UPDATE',
    'posts',
    `SET title = ?, content = ? ${asExpected}`,
  ]);
  const remove = createChange(context, ['DELETE FROM', 'posts', asExpected]);

  return {
    list: () => list.all(),
    find: (id) => find.first(id),
    create: ({ title, content, authorId }) =>
      writes.run(() => {
        const id = createId();
        const post: Post = { id, title, content, status: 'DRAFT', createdAt: now(), authorId };
        insert(toPostRow(post));
        return post;
      }),
    update: (id, change, expected) =>
      writes.run(() => update(...toTexts(change), id, ...toTexts(expected))),
    // Its comments go with it, by the foreign key.
    remove: (id, expected) => writes.run(() => remove(id, ...toTexts(expected))),
    byAuthors: (ids) =>
      groupBy(byAuthors.all(JSON.stringify(ids)), ({ authorId }) => authorId ?? ''),
  };
}

/** The parameters: the id, and the texts that are expected or NULL. */
const asExpected = 'WHERE id = ? AND title = ifnull(?, title) AND content = ifnull(?, content)';

function toTexts(texts: PostTexts | undefined): readonly [string | null, string | null] {
  if (texts === undefined) return [null, null];
  return [escapeText(texts.title), escapeText(texts.content)];
}

export function createComments(context: SqliteContext): Comments {
  const { database, writes, createId, now } = context;
  const hasPost = database.prepare('SELECT 1 FROM posts WHERE id = ?');
  const select = createSelect(database, 'comments', toComment);
  const find = select('WHERE id = ?');
  const list = select('WHERE post_id = ? ORDER BY seq');
  const byPosts = select('WHERE post_id IN (SELECT value FROM json_each(?)) ORDER BY seq');
  const insert = createInsert(context, 'comments');

  return {
    find: (id) => find.first(id),
    add(postId, content) {
      return writes.run(() => {
        if (hasPost.get(postId) === undefined) return undefined;
        const comment: Comment = { id: createId(), content, createdAt: now(), postId };
        insert(toCommentRow(comment));
        return comment;
      });
    },
    list(postId) {
      const comments = list.all(postId);
      return comments.length > 0 || hasPost.get(postId) !== undefined ? comments : undefined;
    },
    byPosts: (ids) => groupBy(byPosts.all(JSON.stringify(ids)), ({ postId }) => postId),
  };
}
