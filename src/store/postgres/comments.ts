/**
 * Comments in PostgreSQL, which every node hears of, once each and in the stored order. The table
 * itself is the queue: a node reads what comes after its cursor. NOTIFY only says that there is
 * something to read; it is sent after the write and for many writes at once, because inside the
 * write it would let one transaction commit at a time. Where none arrives, a slow timer looks.
 */

import type { Stored } from './comment-order.ts';
import { type FeedDeps, Follower } from './follower.ts';
import { createHints, type Hints } from './hints.ts';
import type { Comment } from '../model.ts';
import type { PostgresContext } from './pool.ts';
import { createComments as createShared } from '../sql/records.ts';
import { escapeText } from '../sql/text-escape.ts';
import type { Comments } from '../store.ts';

export function createComments(context: PostgresContext, feed: CommentFeed): Comments {
  const { pool, createId, now } = context;
  return {
    ...createShared(context),
    watch: (listener) => feed.watch(listener),
    async add(postId, content) {
      await feed.placed();
      const comment: Comment = { id: createId(), content, createdAt: now(), postId };
      // The lock keeps the post in place until the comment is stored. It also comes before the
      // sequence is asked for a value: the feed relies on that (see follower.ts).
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

export interface CommentFeed {
  /**
   * To be waited for before a comment of this node is stored, so that every listener of now hears
   * of it. Rejects as the pool does.
   */
  placed(): Promise<unknown> | undefined;
  /** A comment that this node stored. */
  stored(stored: Stored): void;
  /** Without listeners neither the table is read nor hints are listened to. */
  watch(listener: (comment: Comment) => void): () => void;
  close(): Promise<void>;
}

/** A comment is told of after so long, together with those that follow it. */
const tellMilliseconds = 5;
/** Between two of these: longer than readers let pass between two looks. */
const tellPaceMilliseconds = 50;

export async function openFeed(deps: FeedDeps): Promise<CommentFeed> {
  const feed = new Feed(deps);
  await feed.check();
  return feed;
}

class Feed implements CommentFeed {
  readonly #deps: FeedDeps;
  readonly #hints: Hints;
  readonly #listeners = new Set<(comment: Comment) => void>();
  /** While there are listeners. */
  #follower: Follower | undefined;
  /** The end of the last one. */
  #closing: Promise<void> | undefined;
  #tellTimer: NodeJS.Timeout | undefined;
  #toldAt = 0;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
    this.#hints = createHints(deps);
  }

  /** So that what does not work is known before the first listener comes. */
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
    this.#listeners.add(listener);
    this.#follower ??= new Follower(this.#deps, this.#hints, (comment) => {
      for (const each of this.#listeners) each(comment);
    });
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#rest();
    };
  }

  placed(): Promise<unknown> | undefined {
    return this.#follower?.placed();
  }

  stored(stored: Stored): void {
    this.#follower?.stored(stored);
    if (this.#tellTimer !== undefined) return;
    const rest = this.#toldAt + tellPaceMilliseconds - performance.now();
    this.#tellTimer = setTimeout(() => this.#tell(), Math.max(tellMilliseconds, rest));
  }

  async close(): Promise<void> {
    clearTimeout(this.#tellTimer);
    this.#rest();
    await this.#closing;
  }

  #rest(): void {
    this.#closing = this.#follower?.close() ?? this.#closing;
    this.#follower = undefined;
  }

  #tell(): void {
    this.#tellTimer = undefined;
    this.#toldAt = performance.now();
    this.#follower?.told();
    this.#hints.tell();
  }
}
