/**
 * Orders the comments that several nodes store: none is lost or delivered twice. Each has a number
 * from one sequence. Numbers are assigned before a comment is visible, so that a higher number may
 * become visible first, and a number may stay unused if its write failed. At a gap it waits until
 * every transaction that was in progress when the gap was first seen has ended. Comments that this
 * node stored are not read from the database again.
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

/** The result of reading the table: one snapshot. */
export interface Look {
  /** Comments after the cursor, in order; only the next ones if there are too many. */
  readonly comments: readonly Numbered[];
  readonly isWhole: boolean;
  /** The highest number of this node's comments before the read. */
  readonly ownMax: number;
  /**
   * Transactions older than `oldest` have ended. If a number is missing, the transaction that took
   * it is older than `next`.
   */
  readonly oldest: bigint;
  readonly next: bigint;
}

interface Gap {
  /** All numbers up to this one were assigned when the gap was seen … */
  readonly upTo: number;
  /** … by transactions older than this one. */
  readonly before: bigint;
  readonly since: number;
}

interface CommentOrderOptions {
  /** The number after which the table is read. */
  readonly cursor: number;
  /** Later numbers whose comments were stored before the start: they are not delivered. */
  readonly known: Iterable<number>;
  /** The timeline of that number. */
  readonly timeline: number;
  readonly deliver: (comment: Comment) => void;
  /** Milliseconds of a monotonic clock. */
  readonly clock: () => number;
  /** How long a transaction of another program may delay the comments after a gap. */
  readonly gapMillisecondsMax: number;
}

/** Limit for own comments that wait for earlier ones; further ones are read from the table. */
const ownBytesMax = 4_194_304;
/** Memory of a comment without its text, in bytes. */
const commentBytes = 400;

export class CommentOrder {
  readonly #options: CommentOrderOptions;
  readonly #known: Set<number>;
  /** Own comments after a gap. */
  readonly #own = new Map<number, Comment>();
  #cursor: number;
  #timeline: number;
  #ownBytes = 0;
  #ownMax = 0;
  #gap: Gap | undefined;

  constructor(options: CommentOrderOptions) {
    this.#options = options;
    this.#known = new Set(options.known);
    this.#cursor = options.cursor;
    this.#timeline = options.timeline;
  }

  /** The timeline of the cursor and of all numbers here. */
  get timeline(): number {
    return this.#timeline;
  }

  /** All comments up to this number were delivered, or will never exist. */
  get cursor(): number {
    return this.#cursor;
  }

  /** Comments whose texts are not needed. */
  get known(): readonly number[] {
    return [...this.#known].filter((seq) => seq > this.#cursor);
  }

  /** The value of `Look.ownMax`; get it before reading the table. */
  get ownMax(): number {
    return this.#ownMax;
  }

  /** The number of own comments that wait for earlier ones. */
  get waiting(): number {
    return this.#own.size;
  }

  /** Adds a comment that this node stored. One of another timeline is ignored: it is read later. */
  stored({ seq, timeline, comment }: Stored): void {
    if (timeline !== this.#timeline) return;
    if (seq <= this.#cursor || this.#ownBytes >= ownBytesMax) return;
    this.#own.set(seq, comment);
    this.#ownBytes += commentBytes + comment.content.length;
    this.#ownMax = Math.max(this.#ownMax, seq);
    this.#deliverOwn();
  }

  /** Delivers what is possible. Returns false at a gap: the caller should read again soon. */
  take(look: Look): boolean {
    const seen = this.#merge(look);
    const highest = seen.at(-1)?.seq ?? 0;
    for (const { seq, comment } of seen) {
      if (seq <= this.#cursor) continue;
      if (seq > this.#cursor + 1 && !this.#mayPassTo(seq, look)) {
        this.#gap ??= { upTo: highest - 1, before: look.next, since: this.#options.clock() };
        return false;
      }
      this.#deliver({ seq, comment });
    }
    this.#deliverOwn();
    return true;
  }

  /** Call it after a failover to a replica that may lack the last comments. */
  rewind(cursor: number, timeline: number): void {
    this.#cursor = cursor;
    this.#timeline = timeline;
    this.#known.clear();
    this.#own.clear();
    this.#ownBytes = 0;
    this.#ownMax = 0;
    this.#gap = undefined;
  }

  /** Own comments are included even if they were removed before the read. */
  #merge({ comments, isWhole, ownMax }: Look): readonly Numbered[] {
    const last = isWhole ? ownMax : (comments.at(-1)?.seq ?? 0);
    const own = [...this.#own].filter(([seq]) => seq <= last);
    if (own.length === 0) return comments;
    const merged = new Map(comments.map(({ seq, comment }) => [seq, comment]));
    for (const [seq, comment] of own) merged.set(seq, comment);
    return [...merged]
      .map(([seq, comment]) => ({ seq, comment }))
      .toSorted((a, b) => a.seq - b.seq);
  }

  #mayPassTo(seq: number, { oldest }: Look): boolean {
    const gap = this.#gap;
    if (gap === undefined || seq - 1 > gap.upTo) {
      this.#gap = undefined;
      return false;
    }
    if (oldest >= gap.before) return true;
    return this.#options.clock() - gap.since > this.#options.gapMillisecondsMax;
  }

  #deliverOwn(): void {
    for (;;) {
      const seq = this.#cursor + 1;
      const comment = this.#own.get(seq);
      if (comment === undefined) return;
      this.#deliver({ seq, comment });
    }
  }

  #deliver({ seq, comment }: Numbered): void {
    this.#cursor = seq;
    if (this.#own.delete(seq)) this.#ownBytes -= commentBytes + comment.content.length;
    if (this.#gap !== undefined && seq > this.#gap.upTo) this.#gap = undefined;
    if (!this.#known.delete(seq)) this.#options.deliver(comment);
  }
}
