/**
 * The comments of all nodes, once each, in the order stored. The table is the queue; a notification
 * only says that there is something to read, and may be lost.
 *
 * 1. A place is given under a lock that is held until the commit (`take_turn` in `steps.ts`),
 *    whichever program inserts. So a comment that is visible has none before it that will become
 *    visible later, and the order of the places is the order of the commits.
 * 2. A node with a listener reads what is behind its cursor, the last place that it has delivered:
 *    after a comment of its own, after a notification, and once a second.
 * 3. A server that took over can lack the last comments, and give their places again. If there is
 *    no place as high as the cursor, or another comment has it, the cursor falls back to the last
 *    comment that was delivered and is still there.
 *
 *     node A                          PostgreSQL                         node B, cursor 7
 *     POST → insert ────────────────→ comments: 8
 *     comments after 7? ────────────→ 8: deliver 8, cursor 8
 *       NOTIFY ─────────────────────→ channel ─────────────────────────→ LISTEN: notified
 *                                     comments after 7? ←─────────────── poll
 *                                     8 ───────────────────────────────→ deliver 8, cursor 8
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import type { PlacedComment, PlacedPage } from '../comments-after.ts';
import { type Server, sql } from './client/connection.ts';
import { listen, type Listening } from './listen.ts';
import type { Pool } from './client/pool.ts';

interface FeedDeps {
  readonly pool: Pool;
  /** Reads a page of the comments after a number. */
  readonly readAfter: (from: number, limit: number) => Promise<PlacedPage>;
  /** The server for LISTEN; undefined if notifications cannot be received. */
  readonly listenServer: Server | undefined;
  readonly log: Log;
}

/** One notification for the comments of this time: a poll costs nearly the same for forty. */
const notifyMilliseconds = 100;
/** Interval between polls without a reason: with notifications, and without. */
const idleMilliseconds = 1_000;
const unnotifiedMilliseconds = 100;
const retryMilliseconds = 200;
const pageLimit = 500;

/** The comments that a cursor can fall back to: more than asynchronous replication mostly loses. */
const deliveredMax = 1_000;

/** A comment that was delivered; of a place without a comment the id is not known. */
interface Delivered {
  readonly place: number;
  readonly id?: string | undefined;
}
const lastText = sql`SELECT seq, id FROM inkwell.comments ORDER BY seq DESC LIMIT 1`;
const checkText = `SELECT coalesce(max(seq), 0) AS last,
    (SELECT id FROM inkwell.comments WHERE seq = $1::bigint) AS id FROM inkwell.comments`;
const thereText = `SELECT max(seq) AS place FROM unnest($1::bigint[], $2::uuid[])
  AS delivered (seq, id) JOIN inkwell.comments USING (seq, id)`;

type Listener = (placed: PlacedComment) => void;

export type CommentFeed = ReturnType<typeof createFeed>;

export function createFeed({ pool, readAfter, listenServer, log }: FeedDeps) {
  /** Identifies this node in notifications. */
  const nodeId = randomUUID();
  let listening: Listening | undefined;
  const polling = createPolling({ pool, readAfter }, () => listening?.isActive() === true);
  let notifyTimer: NodeJS.Timeout | undefined;
  const notify = (): void => {
    notifyTimer = undefined;
    // A notification may be lost.
    pool.write(sql`SELECT pg_notify('inkwell_comments', ${nodeId})`).catch(() => undefined);
  };
  return {
    /** Delivers to one listener: the topic of comments, which has the subscribers. */
    watch(listener: Listener): () => void {
      listening ??=
        listenServer &&
        listen(listenServer, log, (from) => void (from !== nodeId && polling.wake()));
      return polling.start(listener);
    },
    /** Settles when the listener gets every comment that is stored from then on. */
    ready: polling.ready,
    /** Call it when this node has stored a comment. */
    stored(): void {
      polling.wake();
      if (listenServer !== undefined) notifyTimer ??= setTimeout(notify, notifyMilliseconds);
    },
    close(): void {
      clearTimeout(notifyTimer);
      polling.stop();
      listening?.close();
    },
  };
}

type ReadDeps = Pick<FeedDeps, 'pool' | 'readAfter'>;

/** Polls for one listener at a time. */
function createPolling({ pool, readAfter }: ReadDeps, isNotified: () => boolean) {
  /** Present: that of the listener. */
  const now: { cursor?: Cursor | undefined } = {};
  /** Ends the wait between two polls. */
  let wake = (): void => undefined;

  const poll = async (cursor: Cursor): Promise<boolean> => {
    try {
      await cursor.start();
      let isLast = !(await cursor.isBehind());
      while (!isLast && cursor === now.cursor) {
        const page = await readAfter(cursor.place, pageLimit);
        for (const placed of page.found) cursor.deliver(placed);
        isLast = page.isLast;
      }
      return true;
    } catch {
      return false; // The pool has logged the reason.
    }
  };
  const pollAlways = async (cursor: Cursor): Promise<void> => {
    while (cursor === now.cursor) {
      const asked = new Promise<void>((resolve) => (wake = resolve));
      const isDone = await poll(cursor);
      const idle = isNotified() ? idleMilliseconds : unnotifiedMilliseconds;
      const ended = new AbortController();
      const wait = pause(isDone ? idle : retryMilliseconds, undefined, { signal: ended.signal });
      await Promise.race([isDone ? asked : wait, wait.catch(() => undefined)]);
      ended.abort();
    }
  };
  const stop = (): void => {
    now.cursor = undefined;
    wake();
  };
  return {
    start(listener: Listener): () => void {
      const cursor = new Cursor(pool, listener);
      now.cursor = cursor;
      void pollAlways(cursor);
      return () => {
        if (now.cursor === cursor) stop();
      };
    },
    ready: (): Promise<unknown> | undefined =>
      now.cursor?.isStarted === false ? now.cursor.start() : undefined,
    wake: (): void => wake(),
    stop,
  };
}

/** Where the comments of a listener go on. */
class Cursor {
  readonly #pool: Pool;
  readonly #listener: Listener;
  /** The last comments that were delivered, or were there at the start. */
  #delivered: Delivered[] = [];
  #starting: Promise<void> | undefined;

  constructor(pool: Pool, listener: Listener) {
    this.#pool = pool;
    this.#listener = listener;
  }

  get isStarted(): boolean {
    return this.#delivered.length > 0;
  }

  /** After it, the listener gets every comment that is stored from then on. */
  async start(): Promise<void> {
    if (this.isStarted) return;
    this.#starting ??= this.#begin().finally(() => (this.#starting = undefined));
    await this.#starting;
  }

  get place(): number {
    return this.#delivered.at(-1)?.place ?? 0;
  }

  deliver({ place, comment }: PlacedComment): void {
    this.#delivered.push({ place: Number(place), id: comment.id });
    this.#delivered.splice(0, this.#delivered.length - deliveredMax);
    this.#listener({ place, comment });
  }

  /** True if comments are behind the cursor, which has fallen back if it had to. */
  async isBehind(): Promise<boolean> {
    const [row] = await this.#pool.read({ text: checkText, values: [this.place] });
    const [last, found] = [Number(row?.['last']), row?.['id'] ?? undefined];
    const id = this.#delivered.at(-1)?.id;
    const isOther = id !== undefined && found !== undefined && found !== id;
    if (last >= this.place && !isOther) return last > this.place;
    const known = this.#delivered.filter((one) => one.id !== undefined);
    const values = [known.map(({ place }) => place), known.map((one) => one.id ?? null)];
    const there = (await this.#pool.read({ text: thereText, values }))[0]?.['place'] ?? undefined;
    const before = Math.min(last, (this.#delivered[0]?.place ?? 1) - 1);
    this.#delivered =
      there === undefined
        ? [{ place: before }]
        : this.#delivered.filter(({ place }) => place <= Number(there));
    return true;
  }

  async #begin(): Promise<void> {
    const [row] = await this.#pool.read(lastText);
    this.#delivered = [row ? { place: Number(row['seq']), id: String(row['id']) } : { place: 0 }];
  }
}
