/**
 * Reads the comments of all nodes after a cursor while there is a listener: when another node sends
 * a notification, and at intervals.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import { CommentOrder, type Look, type Numbered, type Stored } from './comment-order.ts';
import type { Comment } from '../model.ts';
import type { Listening, Notifications } from './notifications.ts';
import type { Server } from './connection.ts';
import type { Pool } from './pool.ts';
import { type Statement, sql } from './connection.ts';
import { type Row, toComment } from '../sql/rows.ts';
import { pageBytesMax } from '../sql/sql.ts';

export interface FeedDeps {
  readonly pool: Pool;
  /** The server for LISTEN; undefined if notifications cannot be received. */
  readonly listenServer: Server | undefined;
  readonly log: Log;
  readonly timeoutSeconds: number;
  /** Identifies this node in notifications. */
  readonly nodeId: string;
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
/** The maximum of `integer` in PostgreSQL. */
const timelineMax = 2 ** 31 - 1;
/** How often the start checks whether the transactions that it found in progress have ended. */
const startLooksMax = 100;
/** The last numbers, which may belong to transactions that were in progress at the start. */
const startNumbers = 200;

/** Reads the table from its construction on. It exists while there is a listener. */
export class Follower {
  readonly listening: Listening;
  readonly #deps: FeedDeps;
  readonly #deliver: (comment: Comment) => void;
  #start: Promise<Start> | undefined;
  #order: CommentOrder | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  /** True if something happened since the present read began. */
  #again = false;
  #lookedAt = 0;
  /** When the timer starts the next read. */
  #dueAt = 0;
  #closed = false;

  constructor(deps: FeedDeps, notifications: Notifications, deliver: (comment: Comment) => void) {
    this.#deps = deps;
    this.#deliver = deliver;
    this.listening = notifications.listen({
      onNotification: (from) => {
        if (from !== deps.nodeId) this.#ask();
      },
      onConnected: () => this.#ask(),
    });
    void this.#look();
  }

  /** Settles when the start position is known: later comments are after the cursor. */
  placed(): Promise<Start> | undefined {
    if (this.#order !== undefined) return undefined;
    this.#start ??= findStart(this.#deps.pool).catch((error: unknown) => {
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
    if (this.#order !== undefined && this.#order.waiting > 0) this.#ask();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    // A read in progress ends with the pool.
    await this.listening.close();
  }

  #ask(): void {
    const dueAt = this.#lookedAt + paceMilliseconds;
    const wait = dueAt - performance.now();
    if (this.#isLooking) this.#again = true;
    else if (wait <= 0) void this.#look();
    // At a gap the next read may be due sooner.
    else if (dueAt < this.#dueAt) this.#lookIn(wait);
  }

  #lookIn(milliseconds: number): void {
    this.#dueAt = performance.now() + milliseconds;
    clearTimeout(this.#timer);
    if (!this.#closed) this.#timer = setTimeout(() => void this.#look(), milliseconds);
  }

  async #look(): Promise<void> {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#isLooking = true;
    this.#again = false;
    this.#lookedAt = performance.now();
    // The pool has logged the reason of a failure.
    const wait = await this.#lookOnce().catch(() => undefined);
    this.#isLooking = false;
    const rest = this.listening.isActive() ? idleMilliseconds : pollMilliseconds;
    this.#lookIn(wait ?? (this.#again ? paceMilliseconds : rest));
  }

  /** Returns when to read again in milliseconds, if that is known. */
  async #lookOnce(): Promise<number | undefined> {
    const order = (this.#order ??= await this.#begin());
    const { ownMax, cursor, timeline } = order;
    const rows = await this.#deps.pool.read(look({ cursor, timeline, ownMax }));
    const seen = toLook(rows, ownMax);
    // A server that was left behind by a failover: the next read may reach another one.
    if (this.#closed || seen.timeline < timeline) return undefined;
    if (seen.timeline > timeline || seen.last < cursor) {
      // If own comments have moved the cursor during the read, the table is read again.
      if (order.cursor === cursor) this.#followTo(order, seen);
      return 0;
    }
    if (!order.take(seen)) return gapMilliseconds;
    return seen.isWhole ? undefined : 0;
  }

  async #begin(): Promise<CommentOrder> {
    const { pool, timeoutSeconds } = this.#deps;
    const start = (await this.placed()) ?? (await findStart(pool));
    const late = await findLate(pool, start);
    if (!this.#closed) for (const { comment } of late) this.#deliver(comment);
    return new CommentOrder({
      cursor: start.last,
      timeline: start.timeline,
      deliver: this.#deliver,
      clock: () => performance.now(),
      gapMillisecondsMax: (timeoutSeconds + gapSecondsMore) * 1000,
    });
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

interface Position extends Pick<Look, 'ownMax'> {
  readonly cursor: number;
  readonly timeline: number;
  /** False: without texts, so that all rows fit into one read. */
  readonly withTexts?: boolean;
}

/** The start position: the last number, and the comments visible after `after`. */
interface Start extends Seen {
  readonly after: number;
}

async function findStart(pool: Pool): Promise<Start> {
  const { last } = await lookAfter(pool, Number.MAX_SAFE_INTEGER);
  const after = last - startNumbers;
  return { after, ...(await lookAfter(pool, after)) };
}

/** Comments that had a number at the start but were not visible. Some never will be. */
async function findLate(pool: Pool, start: Start): Promise<readonly Numbered[]> {
  const before = new Set(start.comments.map(({ seq }) => seq));
  // Every transaction that took one of these numbers is older than this one.
  const [row] = await pool.write(sql`SELECT pg_current_xact_id()::text AS next`);
  const next = BigInt(String(row?.['next']));
  let seen = await lookAfter(pool, start.after);
  for (let looks = 0; seen.oldest < next && looks < startLooksMax; looks += 1) {
    await pause(gapMilliseconds * 4);
    seen = await lookAfter(pool, start.after);
  }
  // After a failover the table is read from another position, which includes them.
  if (seen.timeline !== start.timeline) return [];
  const late: Numbered[] = [];
  for (const { seq } of seen.comments) {
    if (seq > start.last || before.has(seq)) continue;
    const [found] = (await lookAfter(pool, seq - 1, true)).comments;
    // It may have been removed in the meantime.
    if (found?.seq === seq) late.push(found);
  }
  return late;
}

async function lookAfter(pool: Pool, cursor: number, withTexts = false): Promise<Seen> {
  const position = { cursor, timeline: timelineMax, ownMax: 0, withTexts };
  return toLook(await pool.read(look(position)), 0);
}

/**
 * One statement, so that comments and running transactions belong to one snapshot. The comments are
 * one JSON value: the package takes several times as long for rows. If a number is
 * missing, the statement takes a transaction id of its own: the snapshot's upper limit only covers
 * ended transactions, and can be below some that are running.
 */
function look(position: Position): Statement {
  const { cursor, timeline, ownMax, withTexts = true } = position;
  return sql`SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS oldest,
      CASE WHEN greatest(found.upto, ${ownMax}) > ${cursor} + found.count
        THEN pg_current_xact_id()::text ELSE '0' END AS next,
      numbers.*, found.comments,
      CASE WHEN numbers.timeline > ${timeline} OR numbers.last < ${cursor} THEN (
        SELECT old.seq FROM inkwell.comments AS old
        WHERE old.seq <= ${cursor} AND coalesce(old.timeline, 0) <= ${timeline}
        ORDER BY old.seq DESC LIMIT 1
      ) END AS back
    FROM (
      SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last,
        inkwell.timeline() AS timeline FROM inkwell.comments_seq_seq
    ) AS numbers, (
      SELECT max(seq) AS upto, count(*) AS count, json_agg(comment ORDER BY seq) AS comments FROM (
        SELECT next.*, sum(octet_length(content)) OVER (ORDER BY seq) AS bytes FROM (
          SELECT seq, id, post_id, created_at,
            CASE WHEN ${withTexts}::boolean THEN content ELSE '' END AS content
          FROM inkwell.comments WHERE seq > ${cursor} ORDER BY seq LIMIT ${rowsPerLook}
        ) AS next
      ) AS comment WHERE bytes - octet_length(content) < ${pageBytesMax}
    ) AS found`;
}

interface Seen extends Look {
  /** The last number assigned. */
  readonly last: number;
  readonly timeline: number;
  /** After a failover: the last existing comment up to the cursor, or 0. */
  readonly back: number;
}

function toLook([row]: readonly Row[], ownMax: number): Seen {
  const rows = (row?.['comments'] ?? []) as readonly Row[]; // by the statement
  return {
    comments: rows.map((comment) => ({ seq: Number(comment['seq']), comment: toComment(comment) })),
    isWhole: rows.length < rowsPerLook && Number(rows.at(-1)?.['bytes'] ?? 0) < pageBytesMax,
    ownMax,
    oldest: BigInt(String(row?.['oldest'])),
    next: BigInt(String(row?.['next'])),
    last: Number(row?.['last']),
    timeline: Number(row?.['timeline']),
    back: Number(row?.['back'] ?? 0),
  };
}
