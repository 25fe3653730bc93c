/**
 * The state of the database as a text, by which the response cache tells whether anything was
 * committed (`records/response-cache.ts`).
 *
 * 1. All requests of an iteration of the event loop ask one question, which is sent after they
 *    came. None joins a question that was sent before.
 * 2. The text is that of the snapshot `xmin:xmax:running`: the transactions that are over are those
 *    below xmax but the running ones. One more that ends changes the text, and none comes back.
 * 3. A response is kept under the text that was asked before its reads began. The same text later:
 *    between the two questions nothing was committed, so that a read now finds the same.
 * 4. A commit between the question and the reads makes a newer response under an older text. Only
 *    a question that was sent before that commit can still get this text.
 * 5. A crash can lose transactions that were not flushed (`synchronous_commit = off`), and give
 *    their numbers again; another server counts by itself. So the text also has the start of the
 *    server, the place of its last checkpoint (a recovery ends with one), and its timeline.
 * 6. A server in recovery does not name what runs: it has no text. Nor has a question that fails or
 *    is late; the request then reads. While two are not answered, no more are sent.
 * 7. If the server refuses the question, the log says so once, and nothing is asked any more.
 *
 *     question   running        its text     request
 *     1          700            700:700:     reads under it; 700 is not to be seen
 *     2          700, 701       700:700:     the kept response: 701 has not ended either
 *     3          700            700:702:700  701 was committed: reads, and sees it
 *     4          –              702:702:     700 was committed: reads, and sees both
 */

import { setTimeout as pause } from 'node:timers/promises';
import { AppError, toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { createLoader } from './batch.ts';
import { sql } from './client/connection.ts';
import type { Pool } from './client/pool.ts';

/** How long a request waits for the text before it reads: far longer than a server takes. */
const lateMilliseconds = 100;
/** As many as the loader has under way: none that is given up leaves its place to more. */
const unansweredMax = 2;

/** Some servers refuse it; nothing but the cache needs it. */
export const question = sql`SELECT CASE WHEN NOT pg_is_in_recovery() THEN concat_ws(' ',
    pg_current_snapshot(), pg_postmaster_start_time(), checkpoint_lsn, timeline_id
  ) END AS state FROM pg_control_checkpoint()`;

export function logRefusal(log: Log, error: unknown): void {
  log('warn', 'responses are not cached', { reason: toReason(error) });
}

/** Returns a function that asks for the present text; undefined if the request should read. */
export function createAskState(
  pool: Pick<Pool, 'read'>,
  log: Log,
): () => Promise<string | undefined> {
  let isRefused = false;
  /** Questions that are not over, those that were given up as well. */
  let unanswered = 0;
  const askNow = async (): Promise<string | undefined> => {
    unanswered += 1;
    try {
      const [row] = await pool.read(question);
      return (row?.['state'] ?? undefined) as string | undefined;
    } catch (error) {
      if (!(error instanceof AppError) && !isRefused) {
        isRefused = true;
        logRefusal(log, error);
      }
      return undefined;
    } finally {
      unanswered -= 1;
    }
  };
  const askInTime = async (): Promise<string | undefined> => {
    if (isRefused || unanswered >= unansweredMax) return undefined;
    const late = pause(lateMilliseconds, undefined, { ref: false });
    return Promise.race([askNow(), late]);
  };
  const ask = createLoader<'state', string | undefined>({
    costMax: 1,
    costOf: () => 1,
    loadMany: async () => [await askInTime()],
    loadOne: askInTime,
  });
  return async () => ask('state');
}
