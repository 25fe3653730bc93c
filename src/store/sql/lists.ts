/** Finds and lists in SQL, for both drivers. */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import {
  kinds,
  type Listed,
  type ListName,
  dateById,
  type Order,
  type RecordOf,
} from '../shared.ts';
import { type List, type Page, pageRecordsMax } from '../store.ts';
import { type Cells, namesOf, type Table, toRecord, toSelecting } from './rows.ts';
import {
  type Key,
  type PageExpressions,
  type PageQuery,
  type PageStart,
  type RowPage,
  type Sql,
} from './statements.ts';

/** Returns a function that finds the record whose column has a value. */
export function createFind<N extends Table>(
  sql: Sql,
  [table, column]: readonly [N, Key[1]],
): (value: string | number) => MaybePromise<RecordOf[N] | undefined> {
  const find = sql.createFind([table, column]);
  return (value) => andThen(find(value), (cells) => cells && toRecord[table](cells));
}

/** How the rows of a list are ordered. */
interface Ordering {
  /** The expression of the position of a row. */
  readonly place: string;
  /** The position before the first row. */
  readonly start: number | string;
  /** The type of a position. */
  readonly type: PageQuery['afterType'];
  /** How the position of a record is found; undefined if it is its id. */
  readonly byId?: {
    /** The position of the record that `after` identifies. */
    readonly positionOf: (after: string) => string;
    /** What `after` is, for the id of a record, and its type. */
    readonly toAfter: (id: string) => string;
    readonly type: PageQuery['afterType'];
  };
  /** Of the index, if it has not all rows. */
  readonly condition?: string;
}

/** The source of the rows of a list: what follows `SELECT … FROM`, and the column of positions. */
export function createSource(
  sql: Sql,
  { table, owner, order = kinds[table].order, ordering }: SourceOf,
) {
  const { place, start, byId, condition = '' } = ordering ?? toOrdering(sql, table, order);
  const beyond = order === 'ASC' ? '>' : '<';
  return {
    place,
    start,
    /** Selects up to `limit` rows after a position, or after an id. */
    from: (isAfterId: boolean, { owner: value, after, limit }: PageExpressions): string => {
      const position = isAfterId && byId ? byId.positionOf(after) : after;
      return owner === undefined
        ? `${sql.schema}${table} WHERE ${condition} ${place} ${beyond} ${position}
          ORDER BY ${place} ${order} LIMIT ${limit}`
        : sql.ofOne(table, order, {
            column: owner,
            owner: value,
            by: place,
            place: position,
            condition,
            limit,
          });
    },
  };
}

interface SourceOf {
  readonly table: Listed;
  /** The column whose value selects the rows. */
  readonly owner?: string | undefined;
  readonly order?: Order | undefined;
  readonly ordering?: Ordering;
}

/** If so many comments in a row have waited, a page after a removed one may repeat some. */
const nearMax = 1_000;

/** After every id. */
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * By id for articles, and for posts, whose ids have the time of their creation, also of those that
 * are imported; other records by the order in which they were stored (R2).
 */
function toOrdering(sql: Sql, table: Listed, order = kinds[table].order): Ordering {
  if (table === 'posts') return { place: 'id', start: lastId, type: 'uuid' };
  if (table === 'articles') return { place: 'id', start: 0, type: 'bigint' };
  const name = `${sql.schema}${table}`;
  const isAscending = order === 'ASC';
  const start = isAscending ? 0 : Number.MAX_SAFE_INTEGER;
  const [nearest, direction] = isAscending ? ['<=', 'DESC'] : ['>=', 'ASC'];
  const [last, first] = isAscending ? ['max', 'min'] : ['min', 'max'];
  // Of a removed record, the position of the record with the nearest id. Those of comments that
  // have waited (R48) are not where their ids are.
  const positionOfComment = (id: string): string => `(SELECT coalesce(
      (SELECT seq FROM ${name} WHERE id = given.id),
      (SELECT coalesce(${last}(seq) FILTER (WHERE was_pending IS NULL),
        CASE WHEN count(*) = ${nearMax} THEN ${first}(seq) END)
      FROM (SELECT seq, was_pending FROM ${name} WHERE id ${nearest} given.id
        ORDER BY id ${direction} LIMIT ${nearMax}) AS near), ${start})
    FROM (SELECT ${sql.toId(id)} AS id) AS given)`;
  const positionOf = (id: string): string => `coalesce((SELECT seq FROM ${name}
      WHERE id ${nearest} ${id} ORDER BY id ${direction} LIMIT 1), ${start})`;
  return {
    place: 'seq',
    start,
    type: 'bigint',
    byId: {
      positionOf: table === 'comments' ? positionOfComment : positionOf,
      toAfter: (id) => id,
      type: 'uuid',
    },
  };
}

/** Published posts, by the expressions that their indexes have (R49). */
function createPublished({ schema, toId }: Sql): Ordering & { readonly author: string } {
  const published = "CASE WHEN status = 'PUBLISHED' THEN";
  return {
    place: `${published} published_at || ' ' || CAST(id AS text) END`,
    author: `${published} author_id END`,
    condition: 'published_at IS NOT NULL AND',
    start: '~',
    type: 'text',
    byId: {
      // `after` has the id, a space, and the date of a post of which none is known.
      positionOf(after) {
        const id = 'substr(given.post, 1, 36)';
        const dateIn = (table: string): string =>
          `(SELECT published_at FROM ${schema}${table} WHERE id = ${toId(id)})`;
        const dates = [dateIn('posts'), dateIn('removed_posts'), 'substr(given.post, 38)'];
        return `(SELECT coalesce(${dates.join(', ')}) || ' ' || ${id}
          FROM (SELECT ${after} AS post) AS given)`;
      },
      toAfter: (id) => `${id} ${dateById(id)}`,
      type: 'text',
    },
  };
}

type ReadPage<T> = (start: PageStart) => MaybePromise<Page<T>>;
type ToList<T> = (value?: string) => List<T>;

/**
 * Returns the lists of a table by the value of the member that they are named after. A page is read
 * by position (keyset), so that no cursor stays open between two pages.
 */
export function createList<N extends Listed>(
  sql: Sql,
  table: N,
  [list = 'all', order]: readonly [ListName<RecordOf[N]>?, (Order | undefined)?] = [],
): ToList<RecordOf[N]> {
  const owner = list === 'all' ? undefined : toSelecting(list);
  const inOrder = createOrdered(sql, { table, owner, order });
  const status = kinds[table].dated?.status;
  if (status === undefined || !list.endsWith('status')) return inOrder;
  const ordering = createPublished(sql);
  const all = createOrdered(sql, { table, ordering });
  const condition = `author_id IS NOT NULL AND ${ordering.condition}`;
  const owned = { table, owner: ordering.author, ordering: { ...ordering, condition } };
  const ofAuthor = createOrdered(sql, owned);
  return (value = '') => {
    if (value === status) return all();
    return value.endsWith(status) ? ofAuthor(value.slice(0, -status.length - 1)) : inOrder(value);
  };
}

function createOrdered<N extends Listed>(
  sql: Sql,
  source: SourceOf & { readonly table: N },
): ToList<RecordOf[N]> {
  const { table, owner, order = kinds[table].order } = source;
  const { ordering = toOrdering(sql, table, order) } = source;
  const { byId } = ordering;
  const { place, start, from } = createSource(sql, source);
  const columns = namesOf(table);
  const ownerAt = columns.indexOf(owner ?? '');
  const toListed = (cells: Cells, value?: string): RecordOf[N] => {
    if (value !== undefined && ownerAt >= 0) cells[ownerAt] = value;
    return toRecord[table](cells);
  };
  const toPage = (
    { rows, isCut }: RowPage,
    { owner: value, limit }: PageStart,
  ): Page<RecordOf[N]> => {
    // One more row was read, to know whether there is a next page.
    const isLast = !isCut && rows.length < limit;
    const found = isLast ? rows : rows.slice(0, limit - 1);
    const last = found.at(-1);
    const records = found.map((cells) => toListed(cells, value));
    if (isLast || last === undefined) return { records, next: undefined };
    const at = last[columns.length];
    const after = typeof start === 'string' ? String(at) : Number(at);
    return { records, next: () => readAfterPosition({ owner: value, after, limit }) };
  };
  const createReader = (isAfterId: boolean): ReadPage<RecordOf[N]> => {
    const toText: PageQuery['toText'] = (selected, values) =>
      `SELECT ${selected}, ${place} AS place FROM ${from(isAfterId, values)}`;
    const afterType = (isAfterId && byId ? byId : ordering).type;
    return sql.createPages({ table, order, owner, afterType, toText }, toPage);
  };
  const readAfterPosition = createReader(false);
  const readAfterId = byId ? createReader(true) : readAfterPosition;
  return (value) => ({
    read({ after, limit = pageRecordsMax } = {}) {
      const page = { owner: value, limit: limit + 1 };
      return typeof after === 'string'
        ? readAfterId({ ...page, after: byId?.toAfter(after) ?? after })
        : readAfterPosition({ ...page, after: after ?? start });
    },
  });
}
