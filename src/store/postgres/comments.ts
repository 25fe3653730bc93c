/** Comments in PostgreSQL. `feed.ts` tells every node of each. */

import type { CommentFeed } from './feed.ts';
import type { Comment } from '../model.ts';
import { createLoader } from './batch.ts';
import { ifNew, type Insertion, isFirst, noteKeys, toKeyValues } from './requests.ts';
import { toInserts, type ToInsert, toJson } from './inserts.ts';
import type { PostgresContext } from './statements.ts';
import { sql, type Statement } from './connection.ts';
import { toComments } from '../shared.ts';
import { createReadAfter } from '../sql/comments-after.ts';
import { createTable } from '../sql/ports.ts';
import { type NewRow, toRow } from '../sql/rows.ts';
import type { Place } from '../comments-after.ts';
import type { Comments } from '../store.ts';

export function createComments(context: PostgresContext, feed: CommentFeed): Comments {
  const { pool, versions, requests, createId, now } = context;
  const load = (toStatement: ToInsert) =>
    createLoader(
      toInserts(async (insertions, askedAt, isAgain) => {
        const write = pool.write(toStatement(insertions, isAgain), askedAt);
        const added = await versions.track(write, 'comments');
        const stored = new Map(
          added.map(({ id, seq, timeline }) => {
            return [id, { seq: Number(seq), timeline: Number(timeline) }];
          }),
        );
        // Undefined if there is no such post.
        return insertions.map(({ row }) => stored.get(row['id']));
      }),
    );
  const insert = load((all) => (all.length === 1 ? toInsert(all[0]?.row) : toInsertAll(all)));
  const insertKeyed = load(toInsertKeyed);
  const findPlace = createFindPlace(pool);
  const readAfter = createReadAfter(context.sql);
  return {
    ...toComments(createTable(context.sql, 'comments')),
    async placeOf(id) {
      for (;;) {
        const place = await findPlace(id);
        if (place === undefined) return undefined;
        const { timeline, cursor } = await feed.settled();
        // Of a newer timeline, or a comment that this node has not delivered yet: it will soon.
        if (place.timeline <= timeline && place.at <= cursor) return { at: place.at, timeline };
        await feed.polled();
      }
    },
    async after({ at, timeline: known = 0 }, { onCut, ...range }) {
      const { timeline, cursor, lostAfter } = await feed.settled();
      onCut();
      const from = known < timeline ? Math.min(Number(at), lostAfter) : Number(at);
      return readAfter({ from, upTo: cursor, timeline }, range);
    },
    watch: (listener) => feed.watch(listener),
    ready: () => feed.ready(),
    async add(postId, content, once) {
      await feed.ready();
      const comment: Comment = { id: createId(), content, createdAt: now(), postId };
      const row = toRow(comment);
      const add = async (): Promise<Comment | undefined> => {
        const numbered = await (once ? insertKeyed : insert)({ row, once });
        if (numbered === undefined) return undefined;
        feed.stored({ ...numbered, comment });
        return comment;
      };
      return once ? requests.run(once, add) : add();
    },
  };
}

/** Ids that are looked up by one statement. */
const placesMax = 1_000;

/** Returns a function that finds where a comment is; many ids are one statement. */
function createFindPlace(pool: PostgresContext['pool']) {
  const text = `SELECT id, seq, coalesce(timeline, 0) AS timeline FROM inkwell.comments
    WHERE id = ANY ($1::uuid[])`;
  type Found = Required<Place> & { readonly at: number };
  const loadMany = async (ids: readonly string[], askedAt: number) => {
    const rows = await pool.read({ text, values: [ids] }, askedAt);
    const found = new Map<unknown, Found>(
      rows.map(({ id, seq, timeline }) => [id, { at: Number(seq), timeline: Number(timeline) }]),
    );
    return ids.map((id) => found.get(id));
  };
  const loadOne = async (id: string, askedAt: number) => (await loadMany([id], askedAt))[0];
  return createLoader({ costMax: placesMax, costOf: () => 1, loadMany, loadOne });
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

/** The rows are sorted so that each lock is taken, and each key kept, before the first number. */
function toTextOfAll(keys = '', condition = ''): string {
  return `WITH added AS MATERIALIZED (
        SELECT * FROM json_populate_recordset(
          null::inkwell.comments, $1::text::json) WITH ORDINALITY
      ), post AS MATERIALIZED (
        SELECT id FROM inkwell.posts WHERE id = ANY (ARRAY(SELECT post_id FROM added))
        ORDER BY id FOR KEY SHARE
      )${keys}
      INSERT INTO inkwell.comments (id, post_id, content, created_at, timeline)
      SELECT added.id, post.id, content, created_at, (SELECT inkwell.timeline())
      FROM added JOIN post ON post.id = post_id${condition}
      ORDER BY ordinality RETURNING id, post_id, seq, timeline, pg_current_xact_id()::text AS xid`;
}

const insertAll = toTextOfAll();
const ofPosts = ` WHERE id::uuid = ANY (ARRAY(
        SELECT added.id FROM added JOIN post ON post.id = post_id
      ))`;
const [insertAllKeyed, insertNew] = [ofPosts, ofPosts + ifNew].map((rest) =>
  toTextOfAll(`, ${noteKeys(rest)}`, ` WHERE added.id ${isFirst}`),
) as [string, string];

function toInsertAll(insertions: readonly Insertion[]): Statement {
  return { text: insertAll, values: [toJson(insertions)] };
}

function toInsertKeyed(insertions: readonly Insertion[], isAgain: boolean): Statement {
  const text = isAgain ? insertNew : insertAllKeyed;
  return { text, values: [toJson(insertions), ...toKeyValues(insertions)] };
}
