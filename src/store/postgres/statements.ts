/** The statements of PostgreSQL: what many requests ask for at once is one statement. */

import { changedLengthMax } from '../shared.ts';
import type { RecordText } from '../store.ts';
import type { RecordDeps } from '../sql/ports.ts';
import {
  type Cells,
  columnsOf,
  isTooLong,
  namesOf,
  sizeOf,
  type Row,
  type Table,
  toJson,
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
import type { Statement } from './connection.ts';
import { createInsert, type InsertDeps } from './inserts.ts';
import type { Pool } from './pool.ts';
import { withKey } from './requests.ts';
import { isArea } from '../changes.ts';
import { xid } from './versions.ts';

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

/** Where the id is in `{"id":"…"`. */
const idPlace = [7, 43] as const;

/** Shared by the parts of the driver. */
export interface PostgresContext extends RecordDeps, InsertDeps {
  readonly sql: Sql;
}

export function createStatements({ pool, versions, requests }: InsertDeps): Sql {
  /** Appends what `track` needs. */
  const toTracked = (table: string, text: string): string =>
    isArea(table) ? `${text}, ${xid}` : text;
  const write = (
    table: string,
    statement: Statement,
    askedAt?: number,
  ): Promise<readonly Row[]> => {
    const written = pool.write(statement, askedAt);
    return isArea(table) ? versions.track(written, table) : written;
  };
  return {
    schema: 'inkwell.',
    ofOne(table, order, { column, owner, place, limit }) {
      const [beyond, within] = order === 'ASC' ? ['>', '<='] : ['<', '>='];
      // With `column = owner` the planner could read the table in the order of `seq`, or hash it.
      return `inkwell.${table}
        WHERE (${column}, seq) ${beyond} (${owner}, ${place}) AND ${column} ${within} ${owner}
        ORDER BY ${column} ${order}, seq ${order} LIMIT ${limit}`;
    },
    createFind: (key) => createLoader(findRows(pool, key)),
    createPages: (query, toPage) => createLoader(readPages(pool, query, toPage)),
    createInsert: (table) => createInsert({ pool, versions, requests }, table),
    requests: { find: requests.find },
    read: (text, values) => pool.read({ text, values }),
    write: (...[table, text, values, askedAt]) =>
      write(table, { text: toTracked(table, text), values }, askedAt),
    async writeOnce(once, [table, text, values, askedAt]) {
      const statement = withKey({ text: toTracked(table, text), values }, once);
      const attempt = async (): Promise<true | undefined> =>
        (await write(table, statement, askedAt)).length > 0 || undefined;
      return (await requests.run(once, attempt, askedAt)) ?? false;
    },
    readArticles(columns, askedAt) {
      const text = `SELECT ${columns}, id AS place FROM inkwell.articles ORDER BY id`;
      const read = createBounded(pool, { table: 'articles', order: 'ASC', text }, changedLengthMax);
      return read([], askedAt);
    },
  };
}

function findRows(pool: Pool, [table, column]: Key): Batch<string | number, Cells | undefined> {
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
  pool: Pool,
  query: PageQuery,
  toPage: (rows: RowPage, start: PageStart) => T,
): Batch<PageStart, T> {
  const { table, owner, toText, members } = query;
  const limits = owner === undefined || owner === 'status' ? pagesOfAll : pagesOfOwners;
  const isById = owner === undefined || owner.endsWith('_id');
  const types = [isById ? 'uuid' : 'text', query.isAfterId ? 'uuid' : 'bigint'];
  const { rowsMax, textMax, costOf } = limits;
  const start = { owner: 'start.owner', after: 'start.after', limit: 'start.rows' };
  const bytesMax = `least(${textMax}, ${pageBytesMax} / ${start.limit})`;
  const page = members
    ? `SELECT string_agg(json, E'\\n') AS json, bool_or(json IS NULL) AS too_long
      FROM (${toText(toJson(table, members, bytesMax), start)}) AS row`
    : toText(toShort(table, bytesMax, owner), start);
  const text = `SELECT page.*, start.at FROM
    unnest($1::${types[0]}[], $2::${types[1]}[], $3::bigint[])
      WITH ORDINALITY AS start (owner, after, rows, at)
    CROSS JOIN LATERAL (${page}) AS page LIMIT ${rowsMax + 1}`;
  const toRows = members ? toTexts : toShortRows(table);
  const whole = toText(columnsOf[table], pageParameters(owner !== undefined));
  const readWhole = createBounded(pool, { ...query, text: whole }, pageBytesMax);
  return {
    keyOf: (from) => toPageValues(from).join(' '),
    costMax: rowsMax,
    // A page of JSON is one row, so that the limit on rows does not apply to it.
    costOf: ({ limit }) => (members ? limit : costOf(limit)),
    async loadMany(starts, askedAt) {
      const values = [
        starts.map((from) => from.owner ?? null),
        starts.map((from) => from.after),
        starts.map((from) => from.limit),
      ];
      const all = await pool.readCells({ text, values }, askedAt);
      const found: Cells[][] = starts.map(() => []);
      for (const cells of all) found[Number(cells.at(-1)) - 1]?.push(cells);
      // If the limit was reached, the page of the last row and those after it are incomplete.
      const end = all.length > rowsMax ? Number(all.at(-1)?.at(-1)) - 1 : starts.length;
      return starts.map((from, at) => {
        const rows = at < end ? toRows(found[at] ?? []) : undefined;
        return rows ? toPage({ rows, isCut: false }, from) : individually;
      });
    },
    loadOne: async (from, askedAt) => toPage(await readWhole(toPageValues(from), askedAt), from),
  };
}

/** Returns a function that returns its rows, or undefined if one is too long. */
function toShortRows(table: Table) {
  return (rows: readonly Cells[]): readonly Cells[] | undefined =>
    rows.some((cells) => isTooLong(table, cells)) ? undefined : rows;
}

/**
 * The records of a page of JSON, which has no line feeds; undefined if one is too long, or has an
 * escaped text (see `rows.ts`).
 */
function toTexts([page]: readonly Cells[]): readonly RecordText[] | undefined {
  const [json, tooLong] = (page ?? []) as readonly (string | null)[];
  if (tooLong === 't' || json?.includes('\u241a') === true) return undefined;
  return json?.split('\n').map((text) => ({ id: text.slice(...idPlace), json: text })) ?? [];
}

interface Bounded extends Pick<PageQuery, 'table' | 'order'> {
  /** Selects columns, and then `place`. */
  readonly text: string;
}

/** Returns a function that reads rows until their texts have more than `bytesMax` bytes. */
function createBounded(pool: Pool, { table, order, text }: Bounded, bytesMax: number) {
  const size = sizeOf(table);
  const bounded = `SELECT * FROM (
      SELECT page.*, sum(${size}) OVER (ORDER BY place ${order}) AS bytes FROM (${text}) AS page
    ) AS sized WHERE bytes - (${size}) <= ${bytesMax} ORDER BY place ${order}`;
  return async (values: readonly Value[], askedAt?: number): Promise<RowPage> => {
    const rows = await pool.readCells({ text: bounded, values }, askedAt);
    return { rows, isCut: Number(rows.at(-1)?.at(-1) ?? 0) > bytesMax };
  };
}
