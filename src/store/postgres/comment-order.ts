/**
 * Orders the comments that several nodes store: each is delivered once, by ascending number.
 *
 * 1. The insert takes a number from one sequence, before its comment is visible. So a higher number
 *    can become visible first, and a number stays unused if its insert fails.
 * 2. The cursor is the last number that is settled: its comment was delivered or will never exist.
 *    The comment with the next number is delivered at once.
 * 3. Numbers between the cursor and a visible comment are a gap. A gap remembers the transactions
 *    that may still fill it: those older than `before`, which is newer than each of them.
 * 4. When a later poll finds that all transactions older than `before` have ended, what is still
 *    missing will never exist: the comments after the gap are delivered.
 * 5. Other programs may hold a transaction open for hours. A gap ends after `gapMillisecondsMax`
 *    in any case: longer than each transaction of a node.
 * 6. Own comments, which this node has stored, need no poll. Those behind a gap wait here, and are
 *    merged with the comments of the poll.
 *
 *     cursor 7; the transaction 118 has taken 8 and is in progress; 9 and 10 are visible
 *     poll: 9, 10; oldest 118, next 120  → gap {upTo: 9, before: 120}: nothing is delivered
 *     poll: 9, 10; oldest 118            → still waiting
 *     a) poll: 8, 9, 10                  → 8, 9, 10; the cursor is 10, and the gap has ended
 *     b) poll: 9, 10; oldest 121         → 118 has failed: 9, 10; 8 will never exist
 *
 * A shorter way is known: to read only rows of transactions that are older than every transaction
 * in progress (`xid < pg_snapshot_xmin(pg_current_snapshot())`). There are no gaps then, but one
 * long transaction that writes, in any database of the server, delays every comment of all nodes
 * until it ends. Here only a gap waits, and with a limit.
 */

import type { Comment } from '../model.ts';

interface Numbered {
  readonly seq: number;
  readonly comment: Comment;
}

/** Numbers of different timelines are not comparable: a failover starts a new timeline. */
export interface Stored extends Numbered {
  readonly timeline: number;
}

/** What a poll has read: one snapshot of the table. */
export interface Poll {
  /** The comments after the cursor, in order; only the first of them unless `isWhole`. */
  readonly comments: readonly Numbered[];
  readonly isWhole: boolean;
  /** The value of `CommentOrder.ownMax` before the poll. */
  readonly ownMax: number;
  /** All transactions older than `oldest` have ended. */
  readonly oldest: bigint;
  /** Newer than each transaction that has taken a missing number. */
  readonly next: bigint;
}

interface Gap {
  /** The highest number that belongs to the gap. */
  readonly upTo: number;
  readonly before: bigint;
  readonly since: number;
}

interface CommentOrderOptions {
  /** The number after which the table is read. */
  readonly cursor: number;
  /** Later numbers whose comments were stored before the start. They are not delivered. */
  readonly skipped: Iterable<number>;
  /** The timeline of all numbers here. */
  readonly timeline: number;
  readonly deliver: (comment: Comment) => void;
  /** Milliseconds of a monotonic clock. */
  readonly clock: () => number;
  readonly gapMillisecondsMax: number;
  /** After a failover: comments of earlier timelines with higher numbers do not exist any more. */
  readonly lostAfter?: number;
}

/** Limit for own comments that wait for earlier ones; further ones are read from the table. */
const ownBytesMax = 4_194_304;
/** Memory of a comment without its text, in bytes. */
const commentBytes = 400;

export class CommentOrder {
  readonly timeline: number;
  readonly lostAfter: number;
  readonly #options: CommentOrderOptions;
  readonly #skipped: Set<number>;
  /** Own comments after the cursor. */
  readonly #own = new Map<number, Comment>();
  #ownBytes = 0;
  #cursor: number;
  #gap: Gap | undefined;

  constructor(options: CommentOrderOptions) {
    this.timeline = options.timeline;
    this.lostAfter = options.lostAfter ?? Infinity;
    this.#options = options;
    this.#skipped = new Set(options.skipped);
    this.#cursor = options.cursor;
  }

  get cursor(): number {
    return this.#cursor;
  }

  /** True if every comment after the cursor will be delivered, and each before it was stored. */
  get isSettled(): boolean {
    return this.#skipped.size === 0;
  }

  /** Numbers after the cursor whose comments are not delivered: their texts need not be read. */
  get skipped(): readonly number[] {
    return [...this.#skipped].filter((seq) => seq > this.#cursor);
  }

  /** The highest number of own comments that wait for earlier ones, or 0. */
  get ownMax(): number {
    return Math.max(0, ...this.#own.keys());
  }

  /** The number of own comments that wait for earlier ones. */
  get waiting(): number {
    return this.#own.size;
  }

  /** Adds an own comment. One of another timeline is ignored: a poll reads it. */
  stored({ seq, timeline, comment }: Stored): void {
    if (timeline !== this.timeline) return;
    if (seq <= this.#cursor || this.#ownBytes >= ownBytesMax) return;
    this.#own.set(seq, comment);
    this.#ownBytes += commentBytes + comment.content.length;
    this.#deliverOwn();
  }

  /** Delivers what is possible. Returns false at a gap: the caller should poll again soon. */
  take(poll: Poll): boolean {
    const found = this.#withOwn(poll);
    for (const { seq, comment } of found) {
      if (seq <= this.#cursor) continue;
      if (seq > this.#cursor + 1) {
        const gap = this.#gap;
        if (gap === undefined || gap.upTo < seq - 1) {
          const upTo = (found.at(-1)?.seq ?? seq) - 1;
          this.#gap = { upTo, before: poll.next, since: this.#options.clock() };
          return false;
        }
        if (!this.#hasEnded(gap, poll)) return false;
      }
      this.#deliver(seq, comment);
    }
    // The comments with those numbers were before the cursor, or have been removed.
    if (poll.isWhole) this.#skipped.clear();
    this.#deliverOwn();
    return true;
  }

  /**
   * The comments of a poll with the own ones among them, which may have been removed before. Own
   * comments that were stored during the poll are left out: `next` does not cover their gaps.
   */
  #withOwn({ comments, isWhole, ownMax }: Poll): readonly Numbered[] {
    const last = isWhole ? ownMax : (comments.at(-1)?.seq ?? 0);
    const own = [...this.#own].filter(([seq]) => seq <= last);
    if (own.length === 0) return comments;
    const merged = new Map(comments.map(({ seq, comment }) => [seq, comment]));
    for (const [seq, comment] of own) merged.set(seq, comment);
    return [...merged]
      .map(([seq, comment]) => ({ seq, comment }))
      .toSorted((a, b) => a.seq - b.seq);
  }

  #hasEnded({ before, since }: Gap, { oldest }: Poll): boolean {
    const { clock, gapMillisecondsMax } = this.#options;
    return oldest >= before || clock() - since > gapMillisecondsMax;
  }

  #deliverOwn(): void {
    for (;;) {
      const seq = this.#cursor + 1;
      const comment = this.#own.get(seq);
      if (comment === undefined) return;
      this.#deliver(seq, comment);
    }
  }

  #deliver(seq: number, comment: Comment): void {
    this.#cursor = seq;
    if (this.#own.delete(seq)) this.#ownBytes -= commentBytes + comment.content.length;
    if (this.#gap !== undefined && seq > this.#gap.upTo) this.#gap = undefined;
    if (!this.#skipped.delete(seq)) this.#options.deliver(comment);
  }
}
