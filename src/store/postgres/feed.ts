/**
 * The comments of all nodes, to each node, once each and in the stored order. The table itself is
 * the queue: a node reads what comes after its cursor. NOTIFY only says that there is something to
 * read; it is sent after the write and for many writes at once, because inside the write it would
 * let one transaction commit at a time. Where it does not arrive, a slow timer looks.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import { CommentOrder, type Look, type Stored } from './comment-order.ts';
import type { Comment } from '../model.ts';
import { createHints, type Hints } from './hints.ts';
import type { Client, Connect, Pool, Row } from './pool.ts';
import { toComment } from '../sql/rows.ts';

export interface CommentFeed {
  /** A comment that this node stored. */
  stored(stored: Stored): void;
  watch(listener: (comment: Comment) => void): () => void;
  close(): Promise<void>;
}

export interface FeedDeps {
  readonly pool: Pool;
  /** To listen for hints of other nodes; undefined where there are none. */
  readonly connect: Connect | undefined;
  readonly log: Log;
  readonly timeoutSeconds: number;
  /** This node, among those that send hints. */
  readonly nodeId: string;
}

const rowsPerLook = 500;
/** Between two looks while a gap is in the way. */
const gapMilliseconds = 5;
/** Between two looks that nothing asked for: where hints arrive, and where they do not. */
const idleMilliseconds = 1_000;
const deafMilliseconds = 100;
/** One NOTIFY is sent for all comments of so long. */
const tellMilliseconds = 5;
/** Longer than any statement of a node: only a transaction of another program lasts so long. */
const gapSecondsMore = 10;
/** Of PostgreSQL's integers. */
const timelineMax = 2 ** 31 - 1;
/** How often the start looks for the end of the transactions that it found in progress. */
const startLooksMax = 100;

export async function openFeed(deps: FeedDeps): Promise<CommentFeed> {
  const feed = new Feed(deps, await findStart(deps.pool));
  await feed.start();
  return feed;
}

interface Position {
  readonly cursor: number;
  readonly timeline: number;
}

/** The last number of a comment, once all up to it can be seen or never come. */
async function findStart(pool: Pool): Promise<Position> {
  const nowhere = { cursor: Number.MAX_SAFE_INTEGER, timeline: timelineMax };
  const lookOnce = async (): Promise<Seen> =>
    toLook(await pool.read((sql) => look(sql, nowhere)), 0);
  const { last: cursor, timeline } = await lookOnce();
  // A second statement: the transaction of every number up to the cursor is before its `next`.
  const { next } = await lookOnce();
  for (let looks = 0; looks < startLooksMax; looks += 1) {
    if ((await lookOnce()).oldest >= next) break;
    await pause(gapMilliseconds * 4);
  }
  return { cursor, timeline };
}

class Feed implements CommentFeed {
  readonly #deps: FeedDeps;
  readonly #order: CommentOrder;
  readonly #listeners = new Set<(comment: Comment) => void>();
  readonly #hints: Hints;
  #timer: NodeJS.Timeout | undefined;
  #tellTimer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  /** Something happened since the look under way began. */
  #again = false;
  #closed = false;

  constructor(deps: FeedDeps, start: Position) {
    this.#deps = deps;
    this.#order = new CommentOrder({
      ...start,
      deliver: (comment) => {
        for (const listener of this.#listeners) listener(comment);
      },
      clock: () => performance.now(),
      gapMillisecondsMax: (deps.timeoutSeconds + gapSecondsMore) * 1000,
    });
    this.#hints = createHints({
      ...deps,
      heard: (from) => {
        if (from !== deps.nodeId) this.#look();
      },
      connected: () => this.#look(),
    });
  }

  async start(): Promise<void> {
    await this.#hints.start();
    this.#look();
  }

  watch(listener: (comment: Comment) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  stored(stored: Stored): void {
    this.#order.stored(stored);
    this.#tellTimer ??= setTimeout(() => this.#tell(), tellMilliseconds);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#tellTimer);
    // A look under way ends with the pool.
    await this.#hints.close();
  }

  #tell(): void {
    this.#tellTimer = undefined;
    // A comment of another node, that came first, is not here yet.
    if (this.#order.waiting > 0) this.#look();
    this.#hints.tell();
  }

  /**
   * The server may be another one than before, after a failover to a copy that lagged behind, and
   * may have given the numbers of lost comments to others. All comments up to the last one that is
   * still there were delivered; those after it are of the new timeline, or were not delivered yet.
   */
  #followTo({ back, timeline }: Seen): void {
    const { cursor } = this.#order;
    this.#deps.log('warn', 'database has failed over', { timeline, from: cursor, to: back });
    this.#order.rewind(back, timeline);
  }

  /** One at a time; what asks for one meanwhile gets one more. */
  #look(): void {
    this.#again = true;
    if (this.#closed || this.#looking !== undefined) return;
    clearTimeout(this.#timer);
    this.#looking = this.#lookAll().finally(() => {
      this.#looking = undefined;
      if (this.#closed) return;
      const wait = this.#hints.areHeard() ? idleMilliseconds : deafMilliseconds;
      this.#timer = setTimeout(() => this.#look(), wait);
    });
  }

  async #lookAll(): Promise<void> {
    while (this.#again && !this.#closed) {
      this.#again = false;
      const { ownMax, cursor, timeline } = this.#order;
      try {
        const rows = await this.#deps.pool.read((sql) => look(sql, { cursor, timeline }));
        const seen = toLook(rows, ownMax);
        // A server that was left behind: the timer looks again, and by then at another one.
        if (seen.timeline < timeline) return;
        if (seen.timeline > timeline || seen.last < cursor) {
          // Own comments of before may have moved the cursor since the question: it is asked again.
          if (this.#order.cursor === cursor) this.#followTo(seen);
          this.#again = true;
          continue;
        }
        const isFree = this.#order.take(seen);
        this.#again ||= !isFree || !seen.isWhole;
        if (!isFree) await pause(gapMilliseconds);
      } catch {
        // The pool has noted that the database is away; the timer looks again.
        return;
      }
    }
  }
}

/** One statement, so that the comments and what is under way are of one snapshot. */
function look(sql: Client, { cursor, timeline }: Position): ReturnType<typeof sql<Row[]>> {
  return sql`SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS oldest,
      pg_snapshot_xmax(pg_current_snapshot())::text AS next, numbers.*, comment.*,
      CASE WHEN numbers.timeline > ${timeline} OR numbers.last < ${cursor} THEN (
        SELECT old.seq FROM inkwell.comments AS old
        WHERE old.seq <= ${cursor} AND coalesce(old.timeline, 0) <= ${timeline}
        ORDER BY old.seq DESC LIMIT 1
      ) END AS back
    FROM (
      SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last,
        inkwell.timeline() AS timeline FROM inkwell.comments_seq_seq
    ) AS numbers LEFT JOIN (
      SELECT seq, id, post_id, content, created_at FROM inkwell.comments
      WHERE seq > ${cursor} ORDER BY seq LIMIT ${rowsPerLook}
    ) AS comment ON true ORDER BY comment.seq`;
}

interface Seen extends Look {
  /** The last number that was taken. */
  readonly last: number;
  readonly timeline: number;
  /** Where that differs: the last comment up to the cursor that is still there; 0: none is. */
  readonly back: number;
}

function toLook(rows: readonly Row[], ownMax: number): Seen {
  // Without comments there is one row that has none.
  const comments = rows
    .filter((row) => row['seq'] !== null)
    .map((row) => ({ seq: Number(row['seq']), comment: toComment(row) }));
  return {
    comments,
    isWhole: comments.length < rowsPerLook,
    ownMax,
    oldest: BigInt(String(rows[0]?.['oldest'])),
    next: BigInt(String(rows[0]?.['next'])),
    last: Number(rows[0]?.['last']),
    timeline: Number(rows[0]?.['timeline']),
    back: Number(rows[0]?.['back'] ?? 0),
  };
}
