/**
 * The comments of all nodes, once each, in the order stored. The table is the queue: a node reads
 * what follows its cursor while somebody watches. NOTIFY only says that there is something to read.
 * It is sent after the write, once for many writes, because within the transaction it would
 * serialise all commits. If notifications are lost, a slow timer reads the table.
 */

import { randomUUID } from 'node:crypto';
import type { Log } from '../../log.ts';
import type { Comment } from '../model.ts';
import { type Row, toRecord } from '../sql/rows.ts';
import { pageBytesMax } from '../sql/statements.ts';
import { CommentOrder, type Look, type Stored } from './comment-order.ts';
import { type Server, sql } from './connection.ts';
import { listen, type Listening } from './listen.ts';
import type { Pool } from './pool.ts';

interface FeedDeps {
  readonly pool: Pool;
  /** The server for LISTEN; undefined if notifications cannot be received. */
  readonly listenServer: Server | undefined;
  readonly log: Log;
  readonly timeoutSeconds: number;
}

/** Delay of a notification, so that it covers the comments that follow. */
const notifyMilliseconds = 5;
/** Minimum interval between notifications: longer than that at which readers follow them. */
const notifyPaceMilliseconds = 100;

export class CommentFeed {
  readonly #deps: FeedDeps;
  /** Identifies this node in notifications. */
  readonly #nodeId = randomUUID();
  /**
   * From the first listener on: a node without subscribers is not woken, and subscribers that come
   * and go do not open connections.
   */
  #listening: Listening | undefined;
  /** Present while there is a listener: otherwise the table is not read. */
  #follower: Follower | undefined;
  #notifyTimer: NodeJS.Timeout | undefined;
  #notifiedAt = 0;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
  }

  /** For one listener: the topic, which has the subscribers. */
  watch(listener: (comment: Comment) => void): () => void {
    const { listenServer, log } = this.#deps;
    this.#listening ??=
      listenServer &&
      listen(listenServer, log, (from) => {
        if (from !== this.#nodeId) this.#follower?.ask();
      });
    const isNotified = (): boolean => this.#listening?.isActive() ?? false;
    const follower = new Follower(this.#deps, isNotified, listener);
    this.#follower = follower;
    return () => {
      follower.close();
      if (this.#follower === follower) this.#follower = undefined;
    };
  }

  /**
   * Wait for it before storing a comment of this node, so that the present listener gets the
   * comment. Rejects as the pool does.
   */
  ready(): Promise<unknown> | undefined {
    return this.#follower?.ready();
  }

  /** Call it for a comment that this node stored. */
  stored(stored: Stored): void {
    this.#follower?.stored(stored);
    if (this.#deps.listenServer === undefined || this.#notifyTimer !== undefined) return;
    const rest = this.#notifiedAt + notifyPaceMilliseconds - performance.now();
    this.#notifyTimer = setTimeout(() => this.#notify(), Math.max(notifyMilliseconds, rest));
  }

  close(): void {
    clearTimeout(this.#notifyTimer);
    this.#follower?.close();
    this.#listening?.close();
  }

  #notify(): void {
    this.#notifyTimer = undefined;
    this.#notifiedAt = performance.now();
    this.#follower?.notified();
    const notify = sql`SELECT pg_notify('inkwell_comments', ${this.#nodeId})`;
    // A notification may be lost.
    this.#deps.pool.write(notify).catch(() => undefined);
  }
}

const rowsPerLook = 500;
/** Interval between reads at a gap. */
const gapMilliseconds = 5;
/** Interval between reads without a reason: with notifications, and without. */
const idleMilliseconds = 1_000;
const pollMilliseconds = 100;
/**
 * Minimum interval between reads after notifications: a read costs nearly the same for one comment
 * and for forty. Shorter than the interval of a node's notifications, which it must not delay.
 */
const paceMilliseconds = 90;
/** Longer than any statement of a node: only a transaction of another program takes longer. */
const gapSecondsMore = 10;
/** The last numbers, which may belong to transactions that are in progress at the start. */
const startNumbers = 200;

/** Reads the table from its construction on. It exists while there is a listener. */
class Follower {
  readonly #deps: FeedDeps;
  readonly #isNotified: () => boolean;
  readonly #listener: (comment: Comment) => void;
  #start: Promise<CommentOrder> | undefined;
  #order: CommentOrder | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  /** True if something happened since the present read began. */
  #again = false;
  #lookedAt = 0;
  /** When the timer starts the next read. */
  #dueAt = Infinity;
  #closed = false;

  constructor(deps: FeedDeps, isNotified: () => boolean, listener: (comment: Comment) => void) {
    this.#deps = deps;
    this.#isNotified = isNotified;
    this.#listener = listener;
    void this.#look();
  }

  /** Settles when the start position is known. */
  ready(): Promise<CommentOrder> | undefined {
    if (this.#order !== undefined) return undefined;
    this.#start ??= this.#begin().catch((error: unknown) => {
      this.#start = undefined;
      throw error;
    });
    return this.#start;
  }

  /** Without an order, the first read includes the comment. */
  stored(stored: Stored): void {
    this.#order?.stored(stored);
  }

  /** Call it when a notification is sent: an own comment may wait for one of another node. */
  notified(): void {
    if (this.#order !== undefined && this.#order.waiting > 0) this.ask();
  }

  ask(): void {
    if (this.#isLooking) this.#again = true;
    else this.#lookIn(this.#lookedAt + paceMilliseconds - performance.now());
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** The next read may be due sooner already. */
  #lookIn(milliseconds: number): void {
    const dueAt = performance.now() + milliseconds;
    if (this.#closed || dueAt >= this.#dueAt) return;
    this.#dueAt = dueAt;
    clearTimeout(this.#timer);
    if (milliseconds <= 0) void this.#look();
    else this.#timer = setTimeout(() => void this.#look(), milliseconds);
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    this.#again = false;
    this.#lookedAt = performance.now();
    // The pool has logged the reason of a failure.
    const wait = await this.#lookOnce().catch(() => undefined);
    this.#isLooking = false;
    this.#dueAt = Infinity;
    const rest = this.#isNotified() ? idleMilliseconds : pollMilliseconds;
    this.#lookIn(wait ?? (this.#again ? paceMilliseconds : rest));
  }

  /** Returns when to read again in milliseconds, if that is known. */
  async #lookOnce(): Promise<number | undefined> {
    const order = this.#order ?? (await this.ready());
    if (order === undefined) return undefined;
    const { ownMax, cursor, timeline } = order;
    const seen = await look(this.#deps.pool, order);
    // A server that was left behind by a failover: the next read may reach another one.
    if (this.#closed || seen.timeline < timeline) return undefined;
    if (seen.timeline > timeline || seen.last < cursor) {
      // If own comments have moved the cursor during the read, the table is read again.
      if (order.cursor === cursor) this.#followTo(order, seen);
      return 0;
    }
    if (!order.take({ ...seen, ownMax })) return gapMilliseconds;
    return seen.isWhole ? undefined : 0;
  }

  /**
   * Comments with the last numbers may become visible later, and are delivered then. Those that are
   * visible now are not.
   */
  async #begin(): Promise<CommentOrder> {
    const { pool, timeoutSeconds } = this.#deps;
    const [start] = await pool.read({ text: startText, values: [] });
    this.#order = new CommentOrder({
      cursor: Math.max(0, Number(start?.['last']) - startNumbers),
      known: JSON.parse(String(start?.['known'])) as readonly number[], // by the statement
      timeline: Number(start?.['timeline']),
      deliver: (comment) => {
        if (!this.#closed) this.#listener(comment);
      },
      clock: () => performance.now(),
      gapMillisecondsMax: (timeoutSeconds + gapSecondsMore) * 1000,
    });
    return this.#order;
  }

  /**
   * After a failover to a replica that lagged behind, the server may lack comments and assign their
   * numbers again. All comments up to the last one that still exists were delivered; later ones
   * belong to the new timeline, or were not delivered.
   */
  #followTo(order: CommentOrder, { back, timeline }: Seen): void {
    const from = order.cursor;
    this.#deps.log('warn', 'database has failed over', { timeline, from, to: back });
    order.rewind(back, timeline);
  }
}

interface Seen extends Omit<Look, 'ownMax'> {
  /** The last number assigned. */
  readonly last: number;
  readonly timeline: number;
  /** After a failover: the last existing comment up to the cursor, or 0. */
  readonly back: number;
}

const numbers = `(
    SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last,
      inkwell.timeline() AS timeline FROM inkwell.comments_seq_seq
  ) AS numbers`;

const startText = `SELECT last, timeline, array_to_json(ARRAY(
    SELECT seq FROM inkwell.comments WHERE seq > last - ${startNumbers}
  )) AS known FROM ${numbers}`;

/**
 * One statement, so that comments and running transactions belong to one snapshot. The comments are
 * one JSON value: the package takes several times as long for rows. If a number is
 * missing, the statement takes a transaction id of its own: the snapshot's upper limit only covers
 * ended transactions, and can be below some that are running.
 */
const lookText = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS oldest,
    CASE WHEN greatest(found.upto, $1::bigint) > $2::bigint + found.count
      THEN pg_current_xact_id()::text ELSE '0' END AS next,
    numbers.*, found.comments,
    CASE WHEN numbers.timeline > $3::int OR numbers.last < $2 THEN (
      SELECT old.seq FROM inkwell.comments AS old
      WHERE old.seq <= $2 AND coalesce(old.timeline, 0) <= $3
      ORDER BY old.seq DESC LIMIT 1
    ) END AS back
  FROM ${numbers}, (
    SELECT max(seq) AS upto, count(*) AS count,
      coalesce(json_agg(comment ORDER BY seq), '[]') AS comments
    FROM (
      SELECT next.*, sum(octet_length(content)) OVER (ORDER BY seq) AS bytes FROM (
        SELECT seq, id, post_id, created_at,
          CASE WHEN seq = ANY ($4::bigint[]) THEN '' ELSE content END AS content
        FROM inkwell.comments WHERE seq > $2 ORDER BY seq LIMIT ${rowsPerLook}
      ) AS next
    ) AS comment WHERE bytes - octet_length(content) < ${pageBytesMax}
  ) AS found`;

async function look(pool: Pool, order: CommentOrder): Promise<Seen> {
  const values = [order.ownMax, order.cursor, order.timeline, order.known];
  const [row] = await pool.read({ text: lookText, values });
  const rows = JSON.parse(String(row?.['comments'])) as readonly Row[]; // by the statement
  return {
    comments: rows.map((comment) => ({
      seq: Number(comment['seq']),
      comment: toRecord('comments', comment),
    })),
    isWhole: rows.length < rowsPerLook && Number(rows.at(-1)?.['bytes'] ?? 0) < pageBytesMax,
    oldest: BigInt(String(row?.['oldest'])),
    next: BigInt(String(row?.['next'])),
    last: Number(row?.['last']),
    timeline: Number(row?.['timeline']),
    back: Number(row?.['back'] ?? 0),
  };
}
