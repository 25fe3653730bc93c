/**
 * The comments of all nodes, once each, in the order stored. The table is the queue; a notification
 * only says that there is something to read, and may be lost.
 *
 * 1. A node stores a comment. The statement returns its number and the timeline of the server.
 * 2. The node delivers the comment to its own listener as soon as its order allows
 *    (`comment-order.ts`): no read is needed for that.
 * 3. It notifies the others 5 ms later, but at most every 100 ms: once for many comments. A NOTIFY
 *    within the transaction that writes would serialise all commits.
 * 4. A node with a listener polls the table (`feed/comment-poll.ts`) when it was notified, but at
 *    most every 90 ms, again at once if there is more to read, and after 5 ms at a gap.
 * 5. Without a notification it polls once a second; if it cannot receive any, ten times a second.
 * 6. A new timeline means that another server has taken over. It may lack the last comments and
 *    give their numbers again: the order begins again after the last comment that still exists.
 *
 *     node A                          PostgreSQL                         node B, cursor 7
 *     POST → insert ────────────────→ comments: 8
 *     deliver 8 ←── number 8 ────────
 *       5 ms later: NOTIFY ─────────→ channel ─────────────────────────→ LISTEN: notified
 *                                     comments after 7? ←─────────────── poll
 *                                     8 ───────────────────────────────→ deliver 8, cursor 8
 *
 *     ms  0  A stores 8, and at 30 it stores 9     B has polled last at −40
 *     ms  5  A notifies                            B has to wait until 50
 *     ms 50                                        B polls: 8 and 9
 *     ms 105 A notifies for 9                      B polls at 140: nothing new
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import type { Comment } from '../model.ts';
import { CommentOrder, type Stored } from './comment-order.ts';
import { poll, readStart } from './feed/comment-poll.ts';
import { type Server, sql } from './connection.ts';
import { listen, type Listening } from './feed/listen.ts';
import type { Pool } from './pool.ts';
import type { Versions } from './versions.ts';

interface FeedDeps {
  readonly pool: Pool;
  readonly versions: Pick<Versions, 'track'>;
  /** The server for LISTEN; undefined if notifications cannot be received. */
  readonly listenServer: Server | undefined;
  readonly log: Log;
  readonly timeoutSeconds: number;
}

/** Delay of a notification, so that it covers the comments that follow. */
const notifyMilliseconds = 5;
/** Minimum interval between notifications: longer than that at which others poll. */
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
  /** Present while there is a listener. */
  #poller: Poller | undefined;
  #notifyTimer: NodeJS.Timeout | undefined;
  #notifiedAt = -Infinity;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
  }

  /** Delivers to one listener: the topic of comments, which has the subscribers. */
  watch(listener: (comment: Comment) => void): () => void {
    const { listenServer, log } = this.#deps;
    this.#listening ??=
      listenServer &&
      listen(listenServer, log, (from) => {
        if (from !== this.#nodeId) this.#poller?.poll();
      });
    const isNotified = (): boolean => this.#listening?.isActive() ?? false;
    const poller = new Poller(this.#deps, isNotified, listener);
    this.#poller = poller;
    return () => {
      poller.close();
      if (this.#poller === poller) this.#poller = undefined;
    };
  }

  /**
   * Settles when the present listener gets all comments that are stored from then on; undefined if
   * it does already. Rejects as the pool does. A node waits for it before it stores a comment.
   */
  ready(): Promise<unknown> | undefined {
    return this.#poller?.ready();
  }

  /**
   * Resolves with the order of the present listener when it is settled: what has a number up to its
   * cursor has been delivered, or was stored before, and all others will be delivered (R41).
   */
  async settled(): Promise<CommentOrder> {
    for (;;) {
      await this.#poller?.ready();
      const order = this.#poller?.order;
      if (order?.isSettled === true) return order;
      await this.polled();
    }
  }

  /** Resolves after the next poll, which it asks for. Rejects if there is no listener. */
  polled(): Promise<void> {
    return this.#poller?.polled() ?? Promise.reject(new Error('There is no listener.'));
  }

  /** Call it for a comment that this node stored. */
  stored(stored: Stored): void {
    this.#poller?.stored(stored);
    if (this.#deps.listenServer === undefined || this.#notifyTimer !== undefined) return;
    const rest = this.#notifiedAt + notifyPaceMilliseconds - performance.now();
    this.#notifyTimer = setTimeout(() => this.#notify(), Math.max(notifyMilliseconds, rest));
  }

  close(): void {
    clearTimeout(this.#notifyTimer);
    this.#poller?.close();
    this.#listening?.close();
  }

  #notify(): void {
    this.#notifyTimer = undefined;
    this.#notifiedAt = performance.now();
    this.#poller?.notified();
    const notify = sql`SELECT pg_notify('inkwell_comments', ${this.#nodeId}),
      pg_current_xact_id()::text AS xid`;
    // A notification may be lost.
    const { pool, versions } = this.#deps;
    versions.track(pool.write(notify)).catch(() => undefined);
  }
}

const gapMilliseconds = 5;
/** Interval between polls without a reason: with notifications, and without. */
const idleMilliseconds = 1_000;
const unnotifiedMilliseconds = 100;
/**
 * Minimum pause between polls after notifications: a poll costs nearly the same for one comment and
 * for forty. Shorter than the interval of a node's notifications, which it must not delay.
 */
const paceMilliseconds = 90;
/** A gap ends this long after the time limit of a statement. */
const gapSecondsMore = 10;

/** Polls the table from its construction until it is closed. */
class Poller {
  readonly #deps: FeedDeps;
  readonly #isNotified: () => boolean;
  readonly #listener: (comment: Comment) => void;
  #starting: Promise<unknown> | undefined;
  #order: CommentOrder | undefined;
  /** Ends the wait after the present poll. Not a signal, whose error is a fifth of a poll. */
  #ask = (): void => undefined;
  #closed = false;
  /** Called after the next poll. */
  #waiting: (() => void)[] = [];

  constructor(deps: FeedDeps, isNotified: () => boolean, listener: (comment: Comment) => void) {
    this.#deps = deps;
    this.#isNotified = isNotified;
    this.#listener = listener;
    void this.#pollAlways();
  }

  get order(): CommentOrder | undefined {
    return this.#order;
  }

  /** Resolves after the next poll, or its failure. */
  polled(): Promise<void> {
    this.poll();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Settles when the order has its start; undefined if the order exists already. */
  ready(): Promise<unknown> | undefined {
    if (this.#order !== undefined) return undefined;
    this.#starting ??= readStart(this.#deps.pool)
      .then((start) => (this.#order = this.#orderFrom(start)))
      .finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  /** Before there is an order, the comment is one of those that the first poll reads. */
  stored(stored: Stored): void {
    this.#order?.stored(stored);
  }

  /** Call it when a notification is sent: an own comment may wait for one of another node. */
  notified(): void {
    if (this.#order !== undefined && this.#order.waiting > 0) this.poll();
  }

  /** Polls as soon as the pace allows. */
  poll(): void {
    this.#ask();
  }

  close(): void {
    this.#closed = true;
    this.#ask();
    this.#settleWaiting();
  }

  #settleWaiting(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async #pollAlways(): Promise<void> {
    while (!this.#closed) {
      const asked = new Promise<void>((resolve) => (this.#ask = resolve));
      // The pool has logged the reason of a failure.
      const wait = await this.#pollOnce().catch(() => undefined);
      this.#settleWaiting();
      if (wait !== undefined) await pause(wait);
      else {
        await pause(paceMilliseconds);
        const interval = this.#isNotified() ? idleMilliseconds : unnotifiedMilliseconds;
        const timer = setTimeout(this.#ask, interval - paceMilliseconds);
        await asked;
        clearTimeout(timer);
      }
    }
  }

  /** Returns the milliseconds until the next poll, if there is a reason for one. */
  async #pollOnce(): Promise<number | undefined> {
    await this.ready();
    const order = this.#order;
    if (order === undefined) return undefined;
    const { cursor } = order;
    const polled = await poll(this.#deps, order);
    const { timeline, last, back } = polled;
    // A server that was left behind by a failover: the next poll may reach another one.
    if (this.#closed || timeline < order.timeline) return undefined;
    if (timeline > order.timeline || last < cursor) {
      // `back` is the last comment that still exists. It is not the place to begin again if own
      // comments have moved the cursor during the poll: then the next poll finds another.
      if (order.cursor === cursor) {
        const facts = { timeline, from: cursor, to: back };
        this.#deps.log('warn', 'database has failed over', facts);
        const start = { cursor: back, timeline, skipped: [] };
        this.#order = this.#orderFrom({ ...start, lostAfter: back });
      }
      return 0;
    }
    if (!order.take(polled)) return gapMilliseconds;
    return polled.isWhole ? undefined : 0;
  }

  #orderFrom(start: Awaited<ReturnType<typeof readStart>> & { lostAfter?: number }): CommentOrder {
    return new CommentOrder({
      ...start,
      deliver: (comment) => {
        if (!this.#closed) this.#listener(comment);
      },
      clock: () => performance.now(),
      gapMillisecondsMax: (this.#deps.timeoutSeconds + gapSecondsMore) * 1000,
    });
  }
}
