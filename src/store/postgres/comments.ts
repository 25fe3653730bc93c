/**
 * Comments in PostgreSQL. Every node gets each comment once, in the order stored. The table is the
 * queue: a node reads what follows its cursor. NOTIFY only says that there is something to read. It
 * is sent after the write, once for many writes, because within the transaction it would serialise
 * all commits. If notifications are lost, a slow timer reads the table.
 */

import type { Stored } from './comment-order.ts';
import { type FeedDeps, Follower } from './follower.ts';
import { createNotifications, type Notifications } from './notifications.ts';
import type { Comment } from '../model.ts';
import type { Pool } from './pool.ts';
import { createGather } from './gather.ts';
import { type PostgresContext, toInserts } from './statements.ts';
import { sql } from './connection.ts';
import { createComments as createShared } from '../sql/records.ts';
import { type NewRow, toRow } from '../sql/rows.ts';
import type { Comments } from '../store.ts';

export function createComments(context: PostgresContext, feed: CommentFeed): Comments {
  const { pool, createId, now } = context;
  const insert = createGather(toInserts((rows, askedAt) => insertAll(pool, rows, askedAt)));
  return {
    ...createShared(context),
    watch: (listener) => feed.watch(listener),
    async add(postId, content) {
      await feed.placed();
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
  // The lock keeps the post until the comment is stored. It must be taken before the number from
  // the sequence, for which the rows are sorted: the feed relies on that (see follower.ts).
  const stored = await pool.write(
    sql`WITH added AS MATERIALIZED (
        SELECT * FROM json_populate_recordset(
          null::inkwell.comments, ${JSON.stringify(rows)}::text::json) WITH ORDINALITY
      ), post AS MATERIALIZED (
        SELECT id FROM inkwell.posts WHERE id = ANY (ARRAY(SELECT post_id FROM added))
        ORDER BY id FOR KEY SHARE
      )
      INSERT INTO inkwell.comments (id, post_id, content, created_at, timeline)
      SELECT added.id, post.id, content, created_at, (SELECT inkwell.timeline())
      FROM added JOIN post ON post.id = post_id
      ORDER BY ordinality RETURNING id, seq, timeline`,
    askedAt,
  );
  const places = new Map(
    stored.map(({ id, seq, timeline }) => [id, { seq: Number(seq), timeline: Number(timeline) }]),
  );
  return rows.map(({ id }) => places.get(id));
}

/** Delay of a notification, so that it covers the comments that follow. */
const notifyMilliseconds = 5;
/** Minimum interval between notifications: longer than that at which readers follow them. */
const notifyPaceMilliseconds = 100;

export async function openFeed(deps: FeedDeps): Promise<CommentFeed> {
  const feed = new CommentFeed(deps);
  await feed.check();
  return feed;
}

/** The comments of all nodes, for one listener: the topic, which has the subscribers. */
export class CommentFeed {
  readonly #deps: FeedDeps;
  readonly #notifications: Notifications;
  /** Present while there is a listener: otherwise the table is not read. */
  #follower: Follower | undefined;
  /** Settles when the previous follower has closed. */
  #closing: Promise<void> | undefined;
  #notifyTimer: NodeJS.Timeout | undefined;
  #notifiedAt = 0;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
    this.#notifications = createNotifications(deps);
  }

  /** Finds and logs faults before a listener comes. */
  async check(): Promise<void> {
    const stop = this.watch(() => undefined);
    try {
      await this.placed();
      await this.#follower?.listening.begun;
    } finally {
      stop();
    }
  }

  watch(listener: (comment: Comment) => void): () => void {
    this.#follower = new Follower(this.#deps, this.#notifications, listener);
    return () => this.#rest();
  }

  /**
   * Wait for it before storing a comment of this node, so that the present listener gets the
   * comment. Rejects as the pool does.
   */
  placed(): Promise<unknown> | undefined {
    return this.#follower?.placed();
  }

  /** Call it for a comment that this node stored. */
  stored(stored: Stored): void {
    this.#follower?.stored(stored);
    if (this.#notifyTimer !== undefined) return;
    const rest = this.#notifiedAt + notifyPaceMilliseconds - performance.now();
    this.#notifyTimer = setTimeout(() => this.#notify(), Math.max(notifyMilliseconds, rest));
  }

  async close(): Promise<void> {
    clearTimeout(this.#notifyTimer);
    this.#rest();
    await this.#closing;
  }

  #rest(): void {
    this.#closing = this.#follower?.close() ?? this.#closing;
    this.#follower = undefined;
  }

  #notify(): void {
    this.#notifyTimer = undefined;
    this.#notifiedAt = performance.now();
    this.#follower?.notified();
    this.#notifications.send();
  }
}
