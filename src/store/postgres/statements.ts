/** The statements of PostgreSQL: what many requests ask for at once is one statement. */

import { changedLengthMax } from '../articles.ts';
import { append } from '../list.ts';
import type { RecordDeps } from '../sql/records.ts';
import { columnsOf, type NewRow, type Row, type Table } from '../sql/rows.ts';
import {
  type Key,
  type Order,
  type Owned,
  type PageQuery,
  pageBytesMax,
  type RowPage,
  type Sql,
  toPageValues,
} from '../sql/sql.ts';
import { isAway } from './faults.ts';
import { createGather, type Gather } from './gather.ts';
import type { Statement } from './connection.ts';
import type { Pool } from './pool.ts';

/** Statements of one kind at the same time. */
const runningMax = 2;
/** Rows that are joined into one statement, and the texts of each, which make some mebibytes. */
const idsMax = 100;
const idTextMax = 40_960;
const insertsMax = 100;
/** A page of so many rows, each with texts up to this size, is shorter than a page may be. */
const shortPageMax = 101;
const pageTextMax = Math.floor(pageBytesMax / shortPageMax);
const pageRowsMax = 1_010;
/** The first rows of so many owners. */
const ownersMax = 100;
const ownedMax = 50;
const ownedTextMax = 2_048;

/** Shared by the parts of the driver. */
export interface PostgresContext extends RecordDeps {
  readonly pool: Pool;
  readonly sql: Statements;
}

export interface Statements extends Sql {
  /** Joins inserts of rows. Each row is stored, or fails, by itself. */
  createInserts<T>(insert: (rows: readonly NewRow[]) => Promise<readonly T[]>): Gather<NewRow, T>;
}

export function createStatements(pool: Pool, milliseconds: number): Statements {
  const limits = { runningMax, milliseconds };
  const kinds = new Map<string, unknown>();
  const ofKind = <T>(name: string, create: () => T): T => {
    const kind = (kinds.get(name) as T | undefined) ?? create(); // names are not used twice
    kinds.set(name, kind);
    return kind;
  };
  const createInserts: Statements['createInserts'] = (insert) =>
    createGather({
      ...limits,
      itemsMax: insertsMax,
      bytesOf: lengthOf,
      async run(rows) {
        try {
          return await insert(rows);
        } catch (error) {
          if (rows.length === 1 || isAway(error)) throw error;
          return rows.map(async (row) => (await insert([row]))[0] as never);
        }
      },
    });

  return {
    schema: 'inkwell.',
    number,
    ofOne([table, column], order, place) {
      const [beyond, within] = order === 'ASC' ? ['>', '<='] : ['<', '>='];
      const owner = hidden('$1', column === 'status' ? 'text' : 'uuid');
      return `inkwell.${table}
        WHERE (${column}, seq) ${beyond} (${owner}, ${place}) AND ${column} ${within} ${owner}
        ORDER BY ${column} ${order}, seq ${order} LIMIT ${number('$3')}`;
    },
    find: (key, value) =>
      ofKind(key.join(' '), () => createGather({ ...limits, ...findRows(pool, key) }))(
        String(value),
      ),
    read: (text, values) => pool.read({ text, values }),
    insert: (table, row) =>
      ofKind(`insert ${table}`, () => createInserts(insertRows(pool, table)))(row),
    write: (_table, text, values) => pool.write({ text, values }),
    createInserts,
    async readPage<T>(query: PageQuery, toPage: (page: RowPage) => T): Promise<T> {
      const { name, order, owner, isFirst, limit } = query;
      const [owned, id = ''] = owner ?? [];
      // A status has more rows than an owner.
      if (owned !== undefined && owned[1] !== 'status' && isFirst) {
        const find = ofKind(`${owned.join(' ')} ${order}`, () =>
          createGather({ ...limits, ...findOwned(pool, owned, order) }),
        );
        const rows = await find(id);
        if (rows !== undefined) return toPage({ rows: rows.slice(0, limit), isCut: false });
      }
      const read = ofKind(`${name} ${owner === undefined ? limit : ''}`, () =>
        createGather({ ...limits, ...readPages(pool, query) }),
      );
      // Equal pages are made by equal functions.
      return read({ query, toPage }) as Promise<T>;
    },
    readArticles(columns) {
      const text = `SELECT id AS place, ${columns} FROM inkwell.articles ORDER BY id`;
      return readBounded(pool, {
        table: 'articles',
        order: 'ASC',
        statement: { text, values: [] },
        bytesMax: changedLengthMax,
      });
    },
  };
}

/** What is specific to one kind of statement. */
type Kind<Item, T> = Omit<
  Parameters<typeof createGather<Item, T>>[0],
  'runningMax' | 'milliseconds'
>;

function findRows(pool: Pool, [table, column]: Key): Kind<string, Row | undefined> {
  const from = `FROM inkwell.${table} WHERE ${column} =`;
  const one = `SELECT ${columnsOf[table]} ${from} $1`;
  const type = column === 'username' ? 'text' : table === 'articles' ? 'bigint' : 'uuid';
  const all = `${hidden('$1', `${type}[]`)}::${type}[]`;
  const many = `SELECT ${toShort(table, idTextMax)} ${from} ANY (${all})`;
  const findOne = async (value: string): Promise<Row | undefined> =>
    (await pool.read({ text: one, values: [value] }))[0];
  return {
    keyOf: String,
    itemsMax: idsMax,
    async run(values) {
      if (values.length === 1) return values.map(findOne);
      const rows = await pool.read({ text: many, values: [values] });
      const found = new Map(rows.map((row) => [String(row[column]), row]));
      return values.map((value) => {
        const row = found.get(value);
        return row !== undefined && isShortened(table, row) ? findOne(value) : row;
      });
    },
  };
}

/** All rows of owners; undefined for an owner with too many, or with long ones. */
function findOwned(
  pool: Pool,
  [table, column]: Owned,
  order: Order,
): Kind<string, readonly Row[] | undefined> {
  // No equality: it would do for the plan to read in the order of `seq`, or to hash the table.
  const text = `SELECT owned.* FROM unnest($1::uuid[]) AS owner (value) CROSS JOIN LATERAL (
      SELECT seq AS place, ${toShort(table, ownedTextMax)} FROM inkwell.${table}
      WHERE ${column} BETWEEN value AND value
      ORDER BY ${column} ${order}, seq ${order} LIMIT ${ownedMax + 1}
    ) AS owned`;
  return {
    keyOf: String,
    itemsMax: ownersMax,
    async run(owners) {
      const found = new Map<string, Row[]>();
      for (const row of await pool.read({ text, values: [owners] })) {
        append(found, String(row[column]), row);
      }
      return owners.map((owner) => {
        const rows = found.get(owner) ?? [];
        const isWhole = rows.length <= ownedMax && !rows.some((row) => isShortened(table, row));
        return isWhole ? rows : undefined;
      });
    },
  };
}

interface Page {
  readonly query: PageQuery;
  readonly toPage: (page: RowPage) => unknown;
}

/** Pages of one list; of equal length, unless they are of owners. */
function readPages(
  pool: Pool,
  { table, toText, owner, after, limit }: PageQuery,
): Kind<Page, unknown> {
  const parameter = owner === undefined ? '$1' : '$2';
  const [from, type] =
    typeof after === 'number' ? [number(parameter), 'bigint'] : [parameter, 'uuid'];
  const short = toText(toShort(table, pageTextMax), from);
  const many = `SELECT start.at, page.* FROM
    unnest($1::${type}[]) WITH ORDINALITY AS start (after, at)
    CROSS JOIN LATERAL (${toText(toShort(table, pageTextMax), 'start.after')}) AS page`;
  const readOne = async ({ query, toPage }: Page): Promise<unknown> => {
    const values = toPageValues(query);
    if (query.limit <= shortPageMax) {
      const rows = await pool.read({ text: short, values });
      if (!rows.some((row) => isShortened(table, row))) return toPage({ rows, isCut: false });
    }
    const statement = { text: toText(columnsOf[table], from), values };
    return toPage(await readBounded(pool, { ...query, statement, bytesMax: pageBytesMax }));
  };
  const joinedMax = owner === undefined ? Math.floor(pageRowsMax / limit) : 1;
  return {
    keyOf: ({ query }) => toPageValues(query).join(' '),
    itemsMax: Math.max(1, joinedMax),
    async run(pages) {
      if (pages.length === 1) return pages.map(readOne);
      const values = [pages.map(({ query }) => query.after), limit];
      const found = new Map<string, Row[]>();
      for (const row of await pool.read({ text: many, values }))
        append(found, String(row['at']), row);
      return pages.map((page, at) => {
        const rows = found.get(String(at + 1)) ?? [];
        const isShort = rows.some((row) => isShortened(table, row));
        return isShort ? readOne(page) : page.toPage({ rows, isCut: false });
      });
    },
  };
}

function insertRows(pool: Pool, table: Table) {
  const text = `INSERT INTO inkwell.${table} (${columnsOf[table]})
    SELECT ${columnsOf[table]} FROM ${rowsOf(table, 1)} ORDER BY ordinality`;
  return async (rows: readonly NewRow[]): Promise<readonly undefined[]> => {
    await pool.write({ text, values: [JSON.stringify(rows)] });
    return rows.map(() => undefined);
  };
}

interface Bounded extends Pick<PageQuery, 'table' | 'order'> {
  readonly statement: Statement;
  readonly bytesMax: number;
}

/** Reads the first rows of a statement up to `bytesMax` bytes of text. */
async function readBounded(
  pool: Pool,
  { table, order, statement: { text, values }, bytesMax }: Bounded,
): Promise<RowPage> {
  const size = sizeOf(table);
  const bounded = `SELECT * FROM (
      SELECT page.*, sum(${size}) OVER (ORDER BY place ${order}) AS bytes FROM (${text}) AS page
    ) AS sized WHERE bytes - (${size}) < ${bytesMax} ORDER BY place ${order}`;
  const rows = await pool.read({ text: bounded, values });
  return { rows, isCut: Number(rows.at(-1)?.['bytes'] ?? 0) >= bytesMax };
}

/** The rows of a table from a parameter with JSON, with their positions. */
export function rowsOf(table: Table, parameter: number): string {
  const row = `null::inkwell.${table}`;
  return `json_populate_recordset(${row}, $${parameter}::text::json) WITH ORDINALITY`;
}

/** The columns with texts of any length, by table. */
const textsOf: Readonly<Partial<Record<Table, readonly string[]>>> = {
  posts: ['title', 'content'],
  comments: ['content'],
  todos: ['title'],
  articles: ['document'],
};

/** The size of a row's texts in bytes, which PostgreSQL knows without reading them. */
function sizeOf(table: Table): string {
  return textsOf[table]?.map((column) => `octet_length(${column})`).join(' + ') ?? '0';
}

/** The columns of a table; texts of more bytes together are null. */
function toShort(table: Table, bytesMax: number): string {
  const toColumn = (column: string): string =>
    textsOf[table]?.includes(column) === true
      ? `CASE WHEN ${sizeOf(table)} <= ${bytesMax} THEN ${column} END AS ${column}`
      : column;
  return columnsOf[table].split(', ').map(toColumn).join(', ');
}

/** True if texts of a row were left out by `toShort`. */
function isShortened(table: Table, row: Row): boolean {
  const [text] = textsOf[table] ?? [];
  return text !== undefined && row[text] === null;
}

/** The characters of a row. */
function lengthOf(row: NewRow): number {
  return Object.values(row).reduce<number>((sum, value) => sum + String(value).length, 0);
}

function number(parameter: string): string {
  return hidden(parameter, 'bigint');
}

/**
 * Hides a value from the planner, so that one generic plan is made per connection. Otherwise the
 * server estimates a plan with the value as cheaper and plans each execution again, which doubles
 * the work of reading a page.
 */
function hidden(parameter: string, type: string): string {
  return `(SELECT ${parameter}::${type})`;
}
