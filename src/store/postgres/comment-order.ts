/**
 * Puts comments that several nodes store into one order without loss and without a second time.
 * Each has a number out of one sequence. Numbers are taken before their comments can be seen, so
 * that a higher one may be seen first; and a number may never come, where a write failed after it
 * had taken one. A gap is therefore waited for until nothing that was under way when it was first
 * seen is still under way. A comment that this node stored needs no second look at the database.
 */

import type { Comment } from '../model.ts';

export interface Numbered {
  readonly seq: number;
  readonly comment: Comment;
}

/** The numbers of two timelines of a database are not the same ones: a failover begins another. */
export interface Stored extends Numbered {
  readonly timeline: number;
}

/** What one look at the database shows: one snapshot of it. */
export interface Look {
  /** Comments after the cursor, in their order; the next ones where there are too many. */
  readonly comments: readonly Numbered[];
  readonly isWhole: boolean;
  /** What was the highest number of this node's own comments before the look. */
  readonly ownMax: number;
  /**
   * No transaction before the first was under way; where a number is missing, whatever took one had
   * begun before the second.
   */
  readonly oldest: bigint;
  readonly next: bigint;
}

interface Gap {
  /** Every number up to this one had been taken when the gap was seen … */
  readonly upTo: number;
  /** … and so by transactions before this one. */
  readonly before: bigint;
  readonly since: number;
}

export interface CommentOrderOptions {
  /** The last number that was taken before the start. */
  readonly cursor: number;
  /** Of that number. */
  readonly timeline: number;
  readonly deliver: (comment: Comment) => void;
  /** Milliseconds of a clock. */
  readonly clock: () => number;
  /** How long a transaction of others may hold up the comments behind a gap. */
  readonly gapMillisecondsMax: number;
}

/** Own comments that wait for those before them; beyond it they are read like those of others. */
const ownBytesMax = 4_194_304;
/** Of a comment without its text. */
const commentBytes = 400;

export class CommentOrder {
  readonly #options: CommentOrderOptions;
  /** Own comments behind a gap. */
  readonly #own = new Map<number, Comment>();
  #cursor: number;
  #timeline: number;
  #ownBytes = 0;
  #ownMax = 0;
  #gap: Gap | undefined;

  constructor(options: CommentOrderOptions) {
    this.#options = options;
    this.#cursor = options.cursor;
    this.#timeline = options.timeline;
  }

  /** What the cursor, and all numbers here, are of. */
  get timeline(): number {
    return this.#timeline;
  }

  /** All up to this number were delivered, or never come. */
  get cursor(): number {
    return this.#cursor;
  }

  /** For `Look.ownMax`: read it before the look. */
  get ownMax(): number {
    return this.#ownMax;
  }

  /** Own comments that wait for others. */
  get waiting(): number {
    return this.#own.size;
  }

  /** A comment that this node stored. On another timeline it is left to the looks at that. */
  stored({ seq, timeline, comment }: Stored): void {
    if (timeline !== this.#timeline) return;
    if (seq <= this.#cursor || this.#ownBytes >= ownBytesMax) return;
    this.#own.set(seq, comment);
    this.#ownBytes += commentBytes + comment.content.length;
    this.#ownMax = Math.max(this.#ownMax, seq);
    this.#deliverOwn();
  }

  /** Delivers what can be delivered. False where a gap is in the way: look again soon. */
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

  /** After a failover to a copy of the database that may not have the last comments. */
  rewind(cursor: number, timeline: number): void {
    this.#cursor = cursor;
    this.#timeline = timeline;
    this.#own.clear();
    this.#ownBytes = 0;
    this.#ownMax = 0;
    this.#gap = undefined;
  }

  /** Own comments count as seen, also where they have been removed again before the look. */
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
    this.#options.deliver(comment);
  }
}
