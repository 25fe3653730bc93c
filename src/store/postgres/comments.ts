/** Comments in PostgreSQL. `feed.ts` tells every node of each. */

import type { CommentFeed } from './feed.ts';
import type { Comment } from '../model.ts';
import { createLoader } from './batch.ts';
import { isRepeated } from '../once.ts';
import { withKey } from './requests.ts';
import type { Statement } from './client/connection.ts';
import { createInserting } from './inserts.ts';
import type { PostgresContext } from './statements.ts';
import { toComments } from '../shared.ts';
import { createReadAfter } from '../sql/comments-after.ts';
import { createTable } from '../sql/ports.ts';
import { columnsOf, toRow } from '../sql/rows.ts';
import type { Comments, Once } from '../store.ts';

export function createComments(context: PostgresContext, feed: CommentFeed): Comments {
  const { pool, requests, createId, now } = context;
  const insert = createInserting(context, 'comments');
  const hold = createInserting(context, 'pending_comments');
  const readAfter = createReadAfter(context.sql);
  const { sql } = context;
  return {
    ...toComments(createTable(sql, 'comments'), createTable(sql, 'pending_comments')),
    placeOf: createFindPlace(pool),
    async after(place, range) {
      // Before the page: what comes after it is behind the cursor of the feed.
      await feed.ready();
      return readAfter(Number(place), range);
    },
    watch: (listener) => feed.watch(listener),
    ready: () => feed.ready(),
    async add(postId, content, { once, name = null, authorId = null, isPending = false } = {}) {
      await feed.ready();
      const made = { id: createId(), content, createdAt: now(), postId };
      const comment: Comment = { ...made, name, authorId };
      const row = toRow(comment);
      const stored = await (isPending ? hold : insert)({ row, once });
      if (stored === true && !isPending) feed.stored();
      return isRepeated(stored) ? stored : stored ? comment : undefined;
    },
    async approve(id, { once, askedAt } = {}) {
      await feed.ready();
      const approved = await requests.change(once, toApproval(id, once), askedAt);
      if (approved === true) feed.stored();
      return approved;
    },
    remove: (ids, { once, askedAt } = {}) => {
      const statement = { text: removed, values: [ids, ids.length] };
      return requests.change(once, withKey(statement, once, removing), askedAt);
    },
  };
}

/** Places that are looked up by one statement. */
const placesMax = 1_000;

/** Returns a function that finds where a comment is; many ids are one statement. */
function createFindPlace(pool: PostgresContext['pool']) {
  const text = 'SELECT id, seq FROM inkwell.comments WHERE id = ANY ($1::uuid[])';
  const loadMany = async (ids: readonly string[], askedAt: number) => {
    const rows = await pool.read({ text, values: [ids] }, askedAt);
    const found = new Map<unknown, number>(rows.map(({ id, seq }) => [id, Number(seq)]));
    return ids.map((id) => found.get(id));
  };
  const loadOne = async (id: string, askedAt: number) => (await loadMany([id], askedAt))[0];
  return createLoader({ costMax: placesMax, costOf: () => 1, loadMany, loadOne });
}

const columns = columnsOf.comments;

/**
 * Gives a comment that waits its place; one that has its place is there, and stays as it is. The
 * post is locked first, as its removal locks it before its comments, and the key is stored before
 * the comment takes its turn (`requests.ts`).
 */
const approving = `WITH approved AS (
    DELETE FROM inkwell.pending_comments WHERE id = $1 AND EXISTS (
      SELECT FROM inkwell.posts
      WHERE id = (SELECT post_id FROM inkwell.pending_comments WHERE id = $1) FOR KEY SHARE
    ) RETURNING ${columns}
  ), there AS MATERIALIZED (
    SELECT id FROM approved UNION ALL SELECT id FROM inkwell.comments WHERE id = $1
  ), noted AS (
    INSERT INTO inkwell.requests (key, print, is_anonymous, result)
    SELECT $2, $3, $4::boolean, '' FROM there WHERE $2::text IS NOT NULL RETURNING 1
  ), settled AS (
    INSERT INTO inkwell.comments (${columns}, was_pending)
    SELECT ${columns}, true FROM approved WHERE $2::text IS NULL OR EXISTS (SELECT FROM noted)
  ) SELECT id FROM there`;

function toApproval(id: string, once: Once | undefined): Statement {
  const { key = null, fingerprint = null, isAnonymous = false } = once ?? {};
  return { text: approving, values: [id, key, fingerprint, isAnonymous] };
}

/**
 * Removes all comments with the ids `$1`, or none if there are not `$2` of them: they are locked
 * before they are counted. Their posts are locked first: the removal of a post removes its comments
 * after its own key.
 */
const removing = `post AS MATERIALIZED (
    SELECT id FROM inkwell.posts WHERE id = ANY (ARRAY(
      SELECT post_id FROM inkwell.comments WHERE id = ANY ($1::uuid[])
      UNION SELECT post_id FROM inkwell.pending_comments WHERE id = ANY ($1::uuid[])
    )) ORDER BY id FOR KEY SHARE
  ), placed AS MATERIALIZED (
    SELECT id FROM inkwell.comments
    WHERE id = ANY ($1::uuid[]) AND (SELECT count(*) FROM post) > 0 ORDER BY id FOR UPDATE
  ), pending AS MATERIALIZED (
    SELECT id FROM inkwell.pending_comments
    WHERE id = ANY ($1::uuid[]) AND (SELECT count(*) FROM post) > 0 ORDER BY id FOR UPDATE
  ), counted AS MATERIALIZED (
    SELECT (SELECT count(*) FROM placed) + (SELECT count(*) FROM pending) = $2 AS is_all
  ), removed AS (
    DELETE FROM inkwell.comments
    WHERE id = ANY (ARRAY(SELECT id FROM placed)) AND (SELECT is_all FROM counted) RETURNING id
  ), removed_pending AS (
    DELETE FROM inkwell.pending_comments
    WHERE id = ANY (ARRAY(SELECT id FROM pending)) AND (SELECT is_all FROM counted) RETURNING id
  )`;
const removed = 'SELECT id FROM removed UNION ALL SELECT id FROM removed_pending';
