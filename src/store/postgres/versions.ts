/**
 * Tells what has changed since a response was made, by whichever program.
 *
 * 1. PostgreSQL names the transactions that a statement sees, as `xmin:xmax:running,…`: all below
 *    `xmax` that are not running. While it names the same, every read finds the same.
 * 2. Since an earlier snapshot, the transactions have ended that were running in it, or are not
 *    below its `xmax`; but not those that the later snapshot names as running.
 * 3. A statement of this process returns its transaction, and the ids of what it has changed. The
 *    changes are counted first (`store/changes.ts`), and then the transaction is known.
 * 4. If all that have ended are known, nothing else has changed. An unknown one is that of another
 *    program or node, or of a statement that failed: everything counts as changed.
 * 5. A snapshot can show a transaction whose result has not arrived. Therefore an unknown one is
 *    waited for while statements are under way, for some milliseconds.
 * 6. A trigger or a rule could change more than a statement returns: while there is one, no
 *    transaction is known. Creating one is an unknown transaction, so that the server is asked for
 *    triggers only after each unknown one.
 *
 *     earlier snapshot   100:104:101   101 was running
 *     later snapshot     103:105:103   101 and 104 have ended
 *     known: 101, 104                  nothing but what was counted has changed
 *     known: 104                       somebody else has committed: everything has changed
 */

import { type Area, Changes } from '../changes.ts';
import type { Row } from '../sql/rows.ts';
import { createLoader } from './batch.ts';
import type { Statement } from './connection.ts';
import type { Pool } from './pool.ts';

/**
 * In recovery the running transactions are not named, so that two states can look alike: a standby
 * gets another text each time. A standby that takes over, and a server that has lost asynchronous
 * commits in a crash, use the numbers of lost transactions again: the former started later, the
 * latter has made a checkpoint since.
 */
const snapshotText = `SELECT pg_current_snapshot(), concat_ws(' ',
    CASE WHEN pg_is_in_recovery() THEN clock_timestamp() ELSE pg_postmaster_start_time() END,
    (pg_control_checkpoint()).checkpoint_lsn)`;
const tables = `ANY (ARRAY['inkwell.posts', 'inkwell.comments', 'inkwell.authors',
    'inkwell.todos', 'inkwell.articles']::regclass[])`;
const readSnapshot: Statement = { text: snapshotText, values: [] };
const readWithTriggers: Statement = {
  text: `${snapshotText},
    EXISTS (SELECT FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = ${tables})
      OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = ${tables})`,
  values: [],
};

/** What each tracked statement returns as `xid`. */
export const xid = 'pg_current_xact_id()::text AS xid';

/** Limit for the known transactions, far more than end between two requests: all are forgotten. */
const knownMax = 10_000;
/** How long an unknown transaction is waited for: its result is on its way. */
const waitMilliseconds = 10;

interface Snapshot {
  readonly xmax: number;
  readonly running: ReadonlySet<number>;
}

export type Versions = ReturnType<typeof createVersions>;

export function createVersions(pool: Pick<Pool, 'readCells'>) {
  const changes = new Changes();
  /** Replaced where what is known does not count any more, also if it arrives later. */
  let known = createKnown();
  const underWay = createUnderWay();
  let last: Snapshot = { xmax: 0, running: new Set() };
  let lastServer = '';
  /** How often there was an unknown transaction, and how often until triggers were looked for. */
  let unknown = 0;
  let checked = -1;

  const read = async (askedAt: number): Promise<undefined> => {
    const before = unknown;
    const isChecked = checked === before;
    const statement = isChecked ? readSnapshot : readWithTriggers;
    const [cells] = await pool.readCells(statement, askedAt);
    const [text = '', server = '', hasTrigger] = cells ?? [];
    const snapshot = toSnapshot(text);
    if (hasTrigger === 't' || server !== lastServer) known = createKnown();
    const isKnown = (): boolean => server === lastServer && known.hasAll(last, snapshot);
    const isCounted = isKnown() || (await underWay.until(isKnown));
    // Another snapshot may have shown a new trigger since the statement was sent.
    if (isCounted && unknown === before) {
      if (hasTrigger === 'f') checked = before;
    } else {
      changes.countEverything();
      unknown += 1;
    }
    if (server !== lastServer || snapshot.xmax >= last.xmax) last = snapshot;
    lastServer = server;
  };
  const load = createLoader<undefined, undefined>({
    keyOf: () => 'all load the same',
    costMax: 1,
    costOf: () => 1,
    loadMany: async (_, askedAt) => [await read(askedAt)],
    loadOne: (_, askedAt) => read(askedAt),
  });
  return {
    changes: () => changes,
    readChanges: () => load(undefined),
    /**
     * Counts what a statement of this process changes. Its rows have `xid`, the id of a changed
     * record of this area, and that of its owner. Without an area, no record is changed.
     */
    async track(statement: Promise<readonly Row[]>, area?: Area): Promise<readonly Row[]> {
      const end = underWay.begin();
      const knownThen = known;
      try {
        const rows = await statement;
        for (const row of rows) {
          const owner = (row['post_id'] ?? row['author_id']) as string | null | undefined;
          if (area !== undefined) changes.count(area, String(row['id']), owner);
          knownThen.add(Number(row['xid']));
        }
        return rows;
      } finally {
        end();
      }
    },
  };
}

/** The transactions of this process whose changes were counted. */
function createKnown() {
  const known = new Set<number>();
  return {
    add(id: number): void {
      if (known.size >= knownMax) known.clear();
      known.add(id);
    },
    /** True if all transactions are known that have ended between two snapshots. */
    hasAll(from: Snapshot, to: Snapshot): boolean {
      if (to.xmax - from.xmax > knownMax) return false;
      const isKnown = (id: number): boolean => to.running.has(id) || known.has(id);
      for (const id of from.running) if (id < to.xmax && !isKnown(id)) return false;
      for (let id = from.xmax; id < to.xmax; id += 1) if (!isKnown(id)) return false;
      return true;
    },
  };
}

/** The statements that are tracked. */
function createUnderWay() {
  const running = new Set<symbol>();
  const waiting = new Set<() => void>();
  return {
    /** Returns a function that ends it. */
    begin(): () => void {
      const statement = Symbol('statement');
      running.add(statement);
      return () => {
        running.delete(statement);
        for (const check of waiting) check();
      };
    },
    /** Resolves with true as soon as `isTrue`; with false when those under way now have ended. */
    until(isTrue: () => boolean): Promise<boolean> {
      const before = [...running];
      return new Promise((resolve) => {
        const settle = (result: boolean): void => {
          clearTimeout(timer);
          waiting.delete(check);
          resolve(result);
        };
        const check = (): void => {
          if (isTrue()) settle(true);
          else if (!before.some((statement) => running.has(statement))) settle(false);
        };
        const timer = setTimeout(settle, waitMilliseconds, false);
        waiting.add(check);
        check();
      });
    },
  };
}

function toSnapshot(text: string): Snapshot {
  const [, xmax, running = ''] = text.split(':');
  return {
    xmax: Number(xmax),
    running: new Set(running === '' ? [] : running.split(',').map(Number)),
  };
}
