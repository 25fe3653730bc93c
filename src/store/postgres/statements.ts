/** The statements of PostgreSQL: what many requests ask for at once is one statement. */

import type { RunInTurn } from '../../scheduler.ts';
import { changeUnlessDone, idOf } from '../once.ts';
import type { DriverOptions } from '../store.ts';
import type { RecordDeps } from '../sql/ports.ts';
import {
  type Cells,
  columnsOf,
  isTooLong,
  namesOf,
  sizeOf,
  toShort,
  type Value,
} from '../sql/rows.ts';
import {
  type Key,
  type PageQuery,
  pageBytesMax,
  pageParameters,
  type PageStart,
  type RowPage,
  type Sql,
  toPageValues,
} from '../sql/statements.ts';
import { type Batch, createLoader, individually } from './batch.ts';
import type { Transaction } from '../sql/transaction.ts';
import { createInsert, type InsertDeps, rowsOf } from './inserts.ts';
import type { Pool, RunStatement } from './client/pool.ts';
import { toKey, withKey } from './requests.ts';
import { filesLock } from './steps.ts';

/** Records that are joined into one statement, and the texts of each, which make some mebibytes. */
const recordsMax = 100;
const recordTextMax = 40_960;
/** How many pages one statement reads. */
interface PageLimits {
  /** Limit for the rows of all pages. */
  readonly rowsMax: number;
  /** Limit for the texts of a row, in bytes. */
  readonly textMax: number;
  /** Returns for how many rows a page with this limit counts. */
  readonly costOf: (limit: number) => number;
}
/** The pages of all records, or of those with a status. */
const pagesOfAll: PageLimits = { rowsMax: 1_010, textMax: 10_380, costOf: (limit) => limit };
/** The pages of owners, most of which have few and short records. */
const pagesOfOwners: PageLimits = { rowsMax: 5_000, textMax: 2_048, costOf: () => 50 };

/** Shared by the parts of the driver. */
export interface PostgresContext extends RecordDeps, InsertDeps {
  readonly sql: Sql;
}

/** Connections that only read. */
type ReadPool = Pick<Pool, 'read' | 'readCells'>;

interface StatementsDeps extends InsertDeps, Pick<DriverOptions, 'run'> {}

export const dialect = {
  schema: 'inkwell.',
  toId: (text) => `CAST(${text} AS uuid)`,
  ofOne(table, order, { column, owner, by, place, condition, limit }) {
    const [beyond, within] = order === 'ASC' ? ['>', '<='] : ['<', '>='];
    // With `column = owner` the planner could read the table in the order of `seq`, or hash it.
    return `inkwell.${table} WHERE ${condition}
      (${column}, ${by}) ${beyond} (${owner}, ${place}) AND ${column} ${within} ${owner}
      ORDER BY ${column} ${order}, ${by} ${order} LIMIT ${limit}`;
  },
  *insert(table, rows, { where = 'true', onConflict = '' } = {}) {
    if (rows.length === 0) return [];
    const columns = Object.keys(rows[0] ?? {}).join();
    const text = `INSERT INTO inkwell.${table} (${columns}) SELECT ${columns}
      FROM ${rowsOf(table, 1)} AS given WHERE ${where} ORDER BY ordinality ${onConflict}`;
    return yield [table, text, [JSON.stringify(rows)]];
  },
  isAmong: (column, texts) =>
    // Forces the index: a join may read all.
    `${column} = ANY (ARRAY(SELECT json_array_elements_text(${texts}::text::json)))`,
  forUpdate: ' FOR UPDATE',
  // As long as a statement may take: others hold it while the disk writes their commits.
  lockFiles: `SELECT set_config('lock_timeout', '0', true), pg_advisory_xact_lock(${filesLock})`,
  newVersion: ', version = DEFAULT',
} as const satisfies Partial<Sql>;

/** The statements that only read. */
export function createReads(pool: ReadPool) {
  return {
    ...dialect,
    createFind: (key) => createLoader(findRows(pool, key)),
    createPages: (query, toPage) => createLoader(readPages(pool, query, toPage)),
    read: (text, values) => pool.read({ text, values }),
  } satisfies Partial<Sql>;
}

export function createStatements(deps: StatementsDeps): Sql {
  const { pool, requests, run } = deps;
  return {
    ...createReads(pool),
    createInsert: (table) => createInsert(deps, table),
    requests: { find: requests.find },
    change: async (once, [, text, values, askedAt]) =>
      requests.change(once, withKey({ text, values }, once), askedAt),
    transact(once, work) {
      const attempt = () =>
        pool.transaction(async (ask) => {
          const done = await act(work(), ask, run);
          if (once !== undefined && done !== undefined) await ask(toKey(once, idOf(done)));
          return done;
        });
      if (once === undefined) return attempt();
      // What it checks may be what the same request has changed before (R40).
      return changeUnlessDone(once, requests, () => requests.run(once, attempt));
    },
  };
}

/** Runs a transaction that is begun. */
export async function act<T>(
  steps: Transaction<T>,
  ask: RunStatement,
  run: RunInTurn = (work) => work(),
): Promise<T> {
  let next = steps.next();
  while (next.done !== true) {
    const step = next.value;
    if (typeof step === 'function') await run(step);
    next = steps.next(
      typeof step === 'function' ? [] : await ask({ text: step[1], values: step[2] }),
    );
  }
  return next.value;
}

function findRows(pool: ReadPool, [table, column]: Key): Batch<string | number, Cells | undefined> {
  const from = `FROM inkwell.${table} WHERE ${column} =`;
  const one = `SELECT ${columnsOf[table]} ${from} $1`;
  const type = column === 'username' ? 'text' : table === 'articles' ? 'bigint' : 'uuid';
  const many = `SELECT ${toShort(table, String(recordTextMax))} ${from} ANY ($1::${type}[])`;
  const keyAt = namesOf(table).indexOf(column);
  const findOne = async (value: string | number, askedAt: number): Promise<Cells | undefined> =>
    (await pool.readCells({ text: one, values: [value] }, askedAt))[0];
  return {
    keyOf: String,
    costMax: recordsMax,
    costOf: () => 1,
    async loadMany(values, askedAt) {
      const [first = ''] = values;
      if (values.length === 1) return [await findOne(first, askedAt)];
      const rows = await pool.readCells({ text: many, values: [values] }, askedAt);
      const found = new Map(rows.map((cells) => [cells[keyAt], cells]));
      return values.map((value) => {
        const cells = found.get(String(value));
        return cells !== undefined && isTooLong(table, cells) ? individually : cells;
      });
    },
    loadOne: findOne,
  };
}

/**
 * Pages of one list. `loadMany` sends the starts of the pages as arrays, and a subquery reads the
 * page of each. A page is loaded individually if the text of a row is too long, or if the limit on
 * rows was reached before it was read completely.
 */
function readPages<T>(
  pool: ReadPool,
  query: PageQuery,
  toPage: (rows: RowPage, start: PageStart) => T,
): Batch<PageStart, T> {
  const { table, owner, toText } = query;
  const limits = owner === undefined || owner === 'status' ? pagesOfAll : pagesOfOwners;
  const types = [/status\)?$/.test(owner ?? '') ? 'text' : 'uuid', query.afterType];
  const { rowsMax, textMax, costOf } = limits;
  const start = { owner: 'start.owner', after: 'start.after', limit: 'start.rows' };
  const bytesMax = `least(${textMax}, ${pageBytesMax} / ${start.limit})`;
  const page = toText(toShort(table, bytesMax, owner), start);
  // Not null in the arrays: where `array_nulls` is off it would be the text NULL.
  const text = `SELECT page.*, start.at FROM (
      SELECT nullif(owner, '')::${types[0]} AS owner,
        nullif(after, '')::${types[1]} AS after, rows, at
      FROM unnest($1::text[], $2::text[], $3::bigint[])
        WITH ORDINALITY AS given (owner, after, rows, at)
    ) AS start CROSS JOIN LATERAL (${page}) AS page LIMIT ${rowsMax + 1}`;
  const whole = toText(columnsOf[table], pageParameters(owner !== undefined));
  const readWhole = createBounded(pool, { ...query, text: whole });
  return {
    keyOf: (from) => toPageValues(from).join(' '),
    costMax: rowsMax,
    costOf: ({ limit }) => costOf(limit),
    async loadMany(starts, askedAt) {
      const values = [
        starts.map((from) => from.owner ?? ''),
        starts.map((from) => from.after ?? ''),
        starts.map((from) => from.limit),
      ];
      const all = await pool.readCells({ text, values }, askedAt);
      const found: Cells[][] = starts.map(() => []);
      for (const cells of all) found[Number(cells.at(-1)) - 1]?.push(cells);
      // If the limit was reached, the page of the last row and those after it are incomplete.
      const end = all.length > rowsMax ? Number(all.at(-1)?.at(-1)) - 1 : starts.length;
      return starts.map((from, at) => {
        const rows = found[at] ?? [];
        const isWhole = at < end && !rows.some((cells) => isTooLong(table, cells));
        return isWhole ? toPage({ rows, isCut: false }, from) : individually;
      });
    },
    loadOne: async (from, askedAt) => toPage(await readWhole(toPageValues(from), askedAt), from),
  };
}

interface Bounded extends Pick<PageQuery, 'table' | 'order'> {
  /** Selects columns, and then `place`. */
  readonly text: string;
}

/** Returns a function that reads rows until their texts have more bytes than a page may. */
function createBounded(pool: ReadPool, { table, order, text }: Bounded) {
  const size = sizeOf(table);
  const bounded = `SELECT * FROM (
      SELECT page.*, sum(${size}) OVER (ORDER BY place ${order}) AS bytes FROM (${text}) AS page
    ) AS sized WHERE bytes - (${size}) <= ${pageBytesMax} ORDER BY place ${order}`;
  return async (values: readonly Value[], askedAt: number): Promise<RowPage> => {
    const rows = await pool.readCells({ text: bounded, values }, askedAt);
    return { rows, isCut: Number(rows.at(-1)?.at(-1) ?? 0) > pageBytesMax };
  };
}
