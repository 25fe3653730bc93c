/** The statements of PostgreSQL: what many requests ask for at once is one statement. */

import { changedLengthMax } from '../shared.ts';
import type { RecordDeps } from '../sql/ports.ts';
import {
  columnsOf,
  isShortened,
  type NewRow,
  type Row,
  sizeOf,
  type Table,
  toJson,
  toShort,
} from '../sql/rows.ts';
import {
  type Key,
  type PageQuery,
  pageBytesMax,
  pageParameters,
  type RowPage,
  type Sql,
  toPageValues,
} from '../sql/statements.ts';
import { isAway } from './faults.ts';
import { createLoader, individually, type Batch, type Loader } from './batch.ts';
import type { Statement } from './connection.ts';
import type { Pool } from './pool.ts';

/** Records that are joined into one statement, and the texts of each, which make some mebibytes. */
const recordsMax = 100;
const recordTextMax = 40_960;
/** The texts of rows that are inserted by one statement, and the least that a row counts. */
const insertTextMax = 1_048_576;
const insertTextMin = 10_485;
/** The rows of joined pages, and the texts of each. */
const pageRowsMax = 1_010;
const pageTextMax = 10_380;
/** The same for pages of owners, most of which have few and short records: each counts as some. */
const ownedRows = 50;
const ownedRowsMax = 100 * ownedRows;
const ownedTextMax = 2_048;

/** Where the id is in `{"id":"…"`. */
const idPlace = [7, 43] as const;

/** Shared by the parts of the driver. */
export interface PostgresContext extends RecordDeps {
  readonly pool: Pool;
  readonly sql: Sql;
}

export function createStatements(pool: Pool): Sql {
  const loaders = new Map<string, unknown>();
  const loaderOf = <Item, T>(name: string, create: () => Batch<Item, T>): Loader<Item, T> => {
    // A name always has the same types.
    const found = (loaders.get(name) as Loader<Item, T> | undefined) ?? createLoader(create());
    loaders.set(name, found);
    return found;
  };
  return {
    schema: 'inkwell.',
    ofOne(table, order, { column, owner, place, limit }) {
      const [beyond, within] = order === 'ASC' ? ['>', '<='] : ['<', '>='];
      // Equality would do for the plan to read in the order of `seq`, or to hash the table.
      return `inkwell.${table}
        WHERE (${column}, seq) ${beyond} (${owner}, ${place}) AND ${column} ${within} ${owner}
        ORDER BY ${column} ${order}, seq ${order} LIMIT ${limit}`;
    },
    find: (key, value) => loaderOf(key.join(' '), () => findRows(pool, key))(String(value)),
    read: (text, values) => pool.read({ text, values }),
    insert: (table, row) => loaderOf(`insert ${table}`, () => insertRows(pool, table))(row),
    write: (_table, text, values) => pool.write({ text, values }),
    async readPage<T>(query: PageQuery, toPage: (page: RowPage) => T): Promise<T> {
      const read = loaderOf(query.name, () => readPages(pool, query));
      // Equal pages are made by equal functions.
      return read({ query, toPage }) as Promise<T>;
    },
    readArticles(columns, askedAt) {
      const text = `SELECT id AS place, ${columns} FROM inkwell.articles ORDER BY id`;
      const statement = { text, values: [] };
      const bytesMax = changedLengthMax;
      return readBounded(pool, { table: 'articles', order: 'ASC', statement, bytesMax }, askedAt);
    },
  };
}

function findRows(pool: Pool, [table, column]: Key): Batch<string, Row | undefined> {
  const from = `FROM inkwell.${table} WHERE ${column} =`;
  const one = `SELECT ${columnsOf[table]} ${from} $1`;
  const type = column === 'username' ? 'text' : table === 'articles' ? 'bigint' : 'uuid';
  const many = `SELECT ${toShort(table, String(recordTextMax))} ${from} ANY ($1::${type}[])`;
  const findOne = async (value: string, askedAt: number): Promise<Row | undefined> =>
    (await pool.read({ text: one, values: [value] }, askedAt))[0];
  return {
    keyOf: String,
    costMax: recordsMax,
    costOf: () => 1,
    async loadMany(values, askedAt) {
      const [first = ''] = values;
      if (values.length === 1) return [await findOne(first, askedAt)];
      const rows = await pool.read({ text: many, values: [values] }, askedAt);
      const found = new Map(rows.map((row) => [String(row[column]), row]));
      return values.map((value) => {
        const row = found.get(value);
        return row !== undefined && isShortened(table, row) ? individually : row;
      });
    },
    loadOne: findOne,
  };
}

interface Page {
  readonly query: PageQuery;
  readonly toPage: (page: RowPage) => unknown;
}

/** Pages of one list. What is too long for a joined statement is read individually. */
function readPages(
  pool: Pool,
  { table, order, toText, owner, after, columns, members }: PageQuery,
): Batch<Page, unknown> {
  const isByStatus = owner?.[0] === 'status';
  // A status has more rows than an author or a post.
  const isOwned = owner !== undefined && !isByStatus;
  const textMax = isOwned ? ownedTextMax : pageTextMax;
  const rowsMax = isOwned ? ownedRowsMax : pageRowsMax;
  const parameters = pageParameters(owner !== undefined);
  const whole = toText(columnsOf[table], parameters);
  const start = { owner: 'start.owner', after: 'start.after', limit: 'start.rows' };
  const types = [isByStatus ? 'text' : 'uuid', typeof after === 'number' ? 'bigint' : 'uuid'];
  const bytesMax = `least(${textMax}, ${pageBytesMax} / ${start.limit})`;
  const page = members
    ? `SELECT string_agg(json, E'\\n') AS json
      FROM (${toText(toJson(table, members, bytesMax), start)}) AS row`
    : toText(toShort(table, bytesMax, columns), start);
  const rowText = members ? 'page.json' : `page.place, page.${columns.join(', page.')}`;
  const text = `SELECT start.at, ${rowText} FROM
    unnest($1::${types[0]}[], $2::${types[1]}[], $3::bigint[])
      WITH ORDINALITY AS start (owner, after, rows, at)
    CROSS JOIN LATERAL (${page}) AS page LIMIT ${rowsMax + 1}`;
  return {
    keyOf: ({ query }) => toPageValues(query).join(' '),
    costMax: rowsMax,
    costOf: ({ query }) => (isOwned && members === undefined ? ownedRows : query.limit),
    async loadMany(pages, askedAt) {
      const owners = pages.map(({ query }) => query.owner?.[1] ?? null);
      const limits = pages.map(({ query }) => query.limit);
      const values = [owners, pages.map(({ query }) => query.after), limits];
      const all = await pool.read({ text, values }, askedAt);
      // Beyond the limit the last page that was begun is cut, and those after it have no rows.
      const end = all.length > rowsMax ? Number(all.at(-1)?.['at']) - 1 : pages.length;
      const found = new Map<string, Row[]>();
      for (const row of all) {
        const at = String(row['at']);
        const known = found.get(at);
        if (known === undefined) found.set(at, [row]);
        else known.push(row);
      }
      return pages.map((asked, at) => {
        const read = found.get(String(at + 1)) ?? [];
        const rows = members ? toTexts(read) : read;
        if (at >= end || rows.some((row) => isShortened(table, row))) return individually;
        return asked.toPage({ rows, isCut: false });
      });
    },
    async loadOne({ query, toPage }, askedAt) {
      const statement = { text: whole, values: toPageValues(query) };
      const bounded = { table, order, statement, bytesMax: pageBytesMax };
      return toPage(await readBounded(pool, bounded, askedAt));
    },
  };
}

/** JSON has no line feeds. A page with an escaped text (see `rows.ts`) is an empty one. */
function toTexts([row]: readonly Row[]): readonly Row[] {
  const { json } = row ?? {};
  if (typeof json !== 'string') return [];
  return json.includes('\u241a')
    ? [{ json: '' }]
    : json.split('\n').map((text) => ({ id: text.slice(...idPlace), json: text }));
}

function insertRows(pool: Pool, table: Table): Batch<NewRow, undefined> {
  const text = `INSERT INTO inkwell.${table} (${columnsOf[table]})
    SELECT ${columnsOf[table]} FROM ${rowsOf(table, 1)} ORDER BY ordinality`;
  return toInserts(async (rows, askedAt) => {
    await pool.write({ text, values: [JSON.stringify(rows)] }, askedAt);
    return rows.map(() => undefined);
  });
}

/** Joins inserts of rows. Each row is stored, or fails, by itself. */
export function toInserts<T>(
  insert: (rows: readonly NewRow[], askedAt: number) => Promise<readonly T[]>,
): Batch<NewRow, T> {
  return {
    costMax: insertTextMax,
    costOf: (row) => Math.max(insertTextMin, lengthOf(row)),
    async loadMany(rows, askedAt) {
      try {
        return await insert(rows, askedAt);
      } catch (error) {
        // What may be stored is not stored again.
        if (rows.length === 1 || isAway(error)) throw error;
        return rows.map(() => individually);
      }
    },
    loadOne: async (row, askedAt) => (await insert([row], askedAt))[0] as T, // as many as rows
  };
}

interface Bounded extends Pick<PageQuery, 'table' | 'order'> {
  readonly statement: Statement;
  readonly bytesMax: number;
}

/** Reads the rows of a statement until their texts have more than `bytesMax` bytes. */
async function readBounded(
  pool: Pool,
  { table, order, statement: { text, values }, bytesMax }: Bounded,
  askedAt?: number,
): Promise<RowPage> {
  const size = sizeOf(table);
  const bounded = `SELECT * FROM (
      SELECT page.*, sum(${size}) OVER (ORDER BY place ${order}) AS bytes FROM (${text}) AS page
    ) AS sized WHERE bytes - (${size}) <= ${bytesMax} ORDER BY place ${order}`;
  const rows = await pool.read({ text: bounded, values }, askedAt);
  return { rows, isCut: Number(rows.at(-1)?.['bytes'] ?? 0) > bytesMax };
}

/** The rows of a table from a parameter with JSON, with their positions. */
export function rowsOf(table: Table, parameter: number): string {
  const row = `null::inkwell.${table}`;
  return `json_populate_recordset(${row}, $${parameter}::text::json) WITH ORDINALITY`;
}

/** The characters of a row. */
function lengthOf(row: NewRow): number {
  return Object.values(row).reduce<number>((sum, value) => sum + String(value).length, 0);
}
