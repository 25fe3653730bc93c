/**
 * The statements with which a node reads the comments of all nodes. A poll is one statement, so
 * that comments and transactions belong to one snapshot. Its parameters: the highest own number
 * that waits, the cursor, the timeline, and the numbers whose texts are not needed.
 *
 * | column     | meaning                                                     | used for          |
 * | ---------- | ----------------------------------------------------------- | ----------------- |
 * | `comments` | rows after the cursor, as one JSON value: the package takes | delivery          |
 * |            | several times as long for rows. Each is an array: the cells |                   |
 * |            | of the table, the number, and the bytes of the texts so far |                   |
 * | `oldest`   | the oldest transaction in progress                          | the end of a gap  |
 * | `next`     | if a number is missing, an id that the statement takes: the | the limit of a    |
 * |            | upper limit of the snapshot only covers ended transactions, | gap (`before`)    |
 * |            | and can be below some in progress                           |                   |
 * | `last`     | the last number that the sequence has given                 | noticing that the |
 * |            |                                                             | server has less   |
 * | `timeline` | the timeline of the server; 0 in recovery                   | noticing failover |
 * | `back`     | after a failover: the last existing comment up to the       | the new cursor    |
 * |            | cursor and of its timeline                                  |                   |
 */

import { type Cells, columnsOf, namesOf, toRecord } from '../../sql/rows.ts';
import { pageBytesMax } from '../../sql/statements.ts';
import type { CommentOrder, Poll } from '../comment-order.ts';
import type { Pool } from '../pool.ts';
import type { Versions } from '../versions.ts';

const rowsMax = 500;
/** Where a row has its number, which follows the cells of the table. */
const seqAt = namesOf('comments').length;
/** The last numbers, which may belong to transactions that are in progress at the start. */
const startNumbers = 200;

const numbers = `(
    SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last,
      inkwell.timeline() AS timeline FROM inkwell.comments_seq_seq
  ) AS numbers`;

const startText = `SELECT last, timeline, array_to_json(ARRAY(
    SELECT seq FROM inkwell.comments WHERE seq > last - ${startNumbers}
  )) AS skipped FROM ${numbers}`;

/**
 * Returns where an order starts. Comments with the last numbers that become visible later are
 * delivered then; those that are visible now (`skipped`) are not.
 */
export async function readStart(pool: Pool) {
  const [row] = await pool.read({ text: startText, values: [] });
  return {
    cursor: Math.max(0, Number(row?.['last']) - startNumbers),
    skipped: JSON.parse(String(row?.['skipped'])) as readonly number[], // by the statement
    timeline: Number(row?.['timeline']),
  };
}

const pollText = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS oldest,
    CASE WHEN greatest(found.upto, $1::bigint) > $2::bigint + found.count
      THEN pg_current_xact_id()::text ELSE '0' END AS xid,
    numbers.*, found.comments,
    CASE WHEN numbers.timeline > $3::int OR numbers.last < $2 THEN (
      SELECT old.seq FROM inkwell.comments AS old
      WHERE old.seq <= $2 AND coalesce(old.timeline, 0) <= $3
      ORDER BY old.seq DESC LIMIT 1
    ) END AS back
  FROM ${numbers}, (
    SELECT max(seq) AS upto, count(*) AS count,
      coalesce(json_agg(json_build_array(${columnsOf.comments}, seq, bytes) ORDER BY seq), '[]')
        AS comments
    FROM (
      SELECT next.*, sum(octet_length(content)) OVER (ORDER BY seq) AS bytes FROM (
        SELECT seq, id, post_id, created_at,
          CASE WHEN seq = ANY ($4::bigint[]) THEN '' ELSE content END AS content
        FROM inkwell.comments WHERE seq > $2 ORDER BY seq LIMIT ${rowsMax}
      ) AS next
    ) AS comment WHERE bytes - octet_length(content) < ${pageBytesMax}
  ) AS found`;

export interface Polled extends Poll {
  readonly last: number;
  readonly timeline: number;
  readonly back: number;
}

export async function poll(
  { pool, versions }: { readonly pool: Pool; readonly versions: Pick<Versions, 'track'> },
  order: CommentOrder,
): Promise<Polled> {
  const { ownMax, cursor, timeline, skipped } = order;
  const read = pool.read({ text: pollText, values: [ownMax, cursor, timeline, skipped] });
  const [row] = await versions.track(read);
  const rows = JSON.parse(String(row?.['comments'])) as readonly Cells[]; // by the statement
  return {
    comments: rows.map((cells) => ({
      seq: Number(cells[seqAt]),
      comment: toRecord.comments(cells),
    })),
    isWhole: rows.length < rowsMax && Number(rows.at(-1)?.[seqAt + 1] ?? 0) < pageBytesMax,
    ownMax,
    oldest: BigInt(String(row?.['oldest'])),
    next: BigInt(String(row?.['xid'])),
    last: Number(row?.['last']),
    timeline: Number(row?.['timeline']),
    back: Number(row?.['back'] ?? 0),
  };
}
