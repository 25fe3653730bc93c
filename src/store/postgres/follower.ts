/**
 * Reads the comments of all nodes behind a cursor, for as long as somebody wants to hear of them:
 * when a hint of another node comes, and now and then without one.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import { CommentOrder, type Look, type Numbered, type Stored } from './comment-order.ts';
import type { Comment } from '../model.ts';
import type { Hints, Listening } from './hints.ts';
import type { Client, Connect, Pool, Row } from './pool.ts';
import { toComment } from '../sql/rows.ts';
import { pageBytesMax } from '../sql/sql.ts';

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
/**
 * Hints are followed no more often, so that each look is for many comments: it costs the same for
 * one and for twenty. Shorter than the pace of one node that tells: its hints are not waited with.
 */
const paceMilliseconds = 40;
/** Longer than any statement of a node: only a transaction of another program lasts so long. */
const gapSecondsMore = 10;
/** Of PostgreSQL's integers. */
const timelineMax = 2 ** 31 - 1;
/** How often the start looks for the end of the transactions that it found in progress. */
const startLooksMax = 100;
/** So many of the last numbers may belong to transactions that the start finds in progress. */
const startNumbers = 200;

/** Reads the table from its creation on: there is one while there are listeners. */
export class Follower {
  readonly listening: Listening;
  readonly #deps: FeedDeps;
  readonly #deliver: (comment: Comment) => void;
  #start: Promise<Start> | undefined;
  #order: CommentOrder | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  /** Something happened since the look under way began. */
  #again = false;
  #lookedAt = 0;
  /** When the next look is due that the timer makes. */
  #dueAt = 0;
  #closed = false;

  constructor(deps: FeedDeps, hints: Hints, deliver: (comment: Comment) => void) {
    this.#deps = deps;
    this.#deliver = deliver;
    this.listening = hints.listen({
      heard: (from) => {
        if (from !== deps.nodeId) this.#ask();
      },
      connected: () => this.#ask(),
    });
    void this.#look();
  }

  /** Settles when what is stored from then on comes behind the cursor. */
  placed(): Promise<Start> | undefined {
    if (this.#order !== undefined) return undefined;
    this.#start ??= findStart(this.#deps.pool).catch((error: unknown) => {
      this.#start = undefined;
      throw error;
    });
    return this.#start;
  }

  /** Before there is an order, a look finds it. */
  stored(stored: Stored): void {
    this.#order?.stored(stored);
  }

  /** A comment of another node, that came before one of this node, may not be here yet. */
  told(): void {
    if (this.#order !== undefined && this.#order.waiting > 0) this.#ask();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    // A look under way ends with the pool.
    await this.listening.close();
  }

  #ask(): void {
    const dueAt = this.#lookedAt + paceMilliseconds;
    const wait = dueAt - performance.now();
    if (this.#isLooking) this.#again = true;
    else if (wait <= 0) void this.#look();
    // In front of a gap it may look sooner than that.
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
    // Where it fails, the pool has noted that the database is away.
    const wait = await this.#lookOnce().catch(() => undefined);
    this.#isLooking = false;
    const rest = this.listening.areHeard() ? idleMilliseconds : deafMilliseconds;
    this.#lookIn(wait ?? (this.#again ? paceMilliseconds : rest));
  }

  /** Gives back when to look again where it is known, in milliseconds. */
  async #lookOnce(): Promise<number | undefined> {
    const order = (this.#order ??= await this.#begin());
    const { ownMax, cursor, timeline } = order;
    const rows = await this.#deps.pool.read((sql) => look(sql, { cursor, timeline, ownMax }));
    const seen = toLook(rows, ownMax);
    // A server that was left behind: by the next look it may be another one.
    if (this.#closed || seen.timeline < timeline) return undefined;
    if (seen.timeline > timeline || seen.last < cursor) {
      // Own comments of before may have moved the cursor since the question: it is asked again.
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
   * The server may be another one than before, after a failover to a copy that lagged behind, and
   * may have given the numbers of lost comments to others. All comments up to the last one that is
   * still there were delivered; those after it are of the new timeline, or were not delivered yet.
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
  /** False: without their texts, and so never too long for one look. */
  readonly areTold?: boolean;
}

/** What a reader finds that begins: the last number, and what could be seen behind `after`. */
interface Start extends Seen {
  readonly after: number;
}

async function findStart(pool: Pool): Promise<Start> {
  const { last } = await lookAfter(pool, Number.MAX_SAFE_INTEGER);
  const after = last - startNumbers;
  return { after, ...(await lookAfter(pool, after)) };
}

/** The comments that had a number at the start and could not be seen yet; some never come. */
async function findLate(pool: Pool, start: Start): Promise<readonly Numbered[]> {
  const before = new Set(start.comments.map(({ seq }) => seq));
  // Whatever took a number up to the last had begun before this transaction.
  const [row] = await pool.write((sql) => sql`SELECT pg_current_xact_id()::text AS next`);
  const next = BigInt(String(row?.['next']));
  let seen = await lookAfter(pool, start.after);
  for (let looks = 0; seen.oldest < next && looks < startLooksMax; looks += 1) {
    await pause(gapMilliseconds * 4);
    seen = await lookAfter(pool, start.after);
  }
  // After a failover all that is there and was not seen is read from another place on.
  if (seen.timeline !== start.timeline) return [];
  const late: Numbered[] = [];
  for (const { seq } of seen.comments) {
    if (seq > start.last || before.has(seq)) continue;
    const [found] = (await lookAfter(pool, seq - 1, true)).comments;
    // It may have been removed meanwhile.
    if (found?.seq === seq) late.push(found);
  }
  return late;
}

async function lookAfter(pool: Pool, cursor: number, areTold = false): Promise<Seen> {
  const position = { cursor, timeline: timelineMax, ownMax: 0, areTold };
  return toLook(await pool.read((sql) => look(sql, position)), 0);
}

/**
 * One statement, so that the comments and what is under way are of one snapshot. Where a number is
 * missing among them, it takes a transaction id: a snapshot ends with the last id that is over, and
 * so before some of those under way.
 */
function look(sql: Client, position: Position): ReturnType<typeof sql<Row[]>> {
  const { cursor, timeline, ownMax, areTold = true } = position;
  return sql`SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS oldest,
      CASE WHEN greatest(max(comment.seq) OVER (), ${ownMax})
        > ${cursor} + count(comment.seq) OVER ()
        THEN pg_current_xact_id()::text ELSE '0' END AS next,
      numbers.*, comment.*,
      CASE WHEN numbers.timeline > ${timeline} OR numbers.last < ${cursor} THEN (
        SELECT old.seq FROM inkwell.comments AS old
        WHERE old.seq <= ${cursor} AND coalesce(old.timeline, 0) <= ${timeline}
        ORDER BY old.seq DESC LIMIT 1
      ) END AS back
    FROM (
      SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last,
        inkwell.timeline() AS timeline FROM inkwell.comments_seq_seq
    ) AS numbers LEFT JOIN (
      SELECT found.*, sum(octet_length(content)) OVER (ORDER BY seq) AS bytes FROM (
        SELECT seq, id, post_id, created_at,
          CASE WHEN ${areTold}::boolean THEN content ELSE '' END AS content
        FROM inkwell.comments WHERE seq > ${cursor} ORDER BY seq LIMIT ${rowsPerLook}
      ) AS found
    ) AS comment ON bytes - octet_length(content) < ${pageBytesMax} ORDER BY comment.seq`;
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
    isWhole: comments.length < rowsPerLook && Number(rows.at(-1)?.['bytes'] ?? 0) < pageBytesMax,
    ownMax,
    oldest: BigInt(String(rows[0]?.['oldest'])),
    next: BigInt(String(rows[0]?.['next'])),
    last: Number(rows[0]?.['last']),
    timeline: Number(rows[0]?.['timeline']),
    back: Number(rows[0]?.['back'] ?? 0),
  };
}
