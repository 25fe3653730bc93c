/** Lists of one table in SQL, with keyset pagination: no statement stays open between two pages. */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import { type List, type Page, pageRecordsMax } from '../list.ts';
import { columnsOf, type Row, type Table } from './rows.ts';
import type { Order, Owned, Sql } from './sql.ts';

export interface Listing<T> {
  readonly table: Table;
  readonly order: Order;
  readonly toRecord: (row: Row) => T;
}

/** `of`: the owner of the records; default: all records. */
export function createList<T>(
  sql: Sql,
  { table, order, toRecord }: Listing<T>,
  of?: readonly [rows: Owned, id: string],
): List<T> {
  const [owned, ...owner] = of ?? [];
  const name = `${sql.schema}${table}`;
  // Articles are ordered by id, other records by the order in which they were stored (R2).
  const key = table === 'articles' ? 'id' : 'seq';
  const [beyond, start] = order === 'ASC' ? ['>', 0] : ['<', Number.MAX_SAFE_INTEGER];
  const from = owned
    ? sql.ofOne(owned, order)
    : `${name} WHERE ${key} ${beyond} $1 ORDER BY ${key} ${order} LIMIT ${sql.limit('$2')}`;
  const text = `SELECT ${key} AS place, ${columnsOf[table]} FROM ${from}`;

  const readFrom = (place: number, limit: number): MaybePromise<Page<T>> =>
    // One more row is read, to know whether there is a next page.
    andThen(
      sql.readPage({ table, text, values: [...owner, place, limit + 1], order }),
      ({ rows, isCut }) => {
        const kept = rows.slice(0, limit);
        const last = kept.at(-1);
        const isLast = last === undefined || (!isCut && rows.length <= limit);
        const next = isLast ? undefined : () => readFrom(Number(last['place']), limit);
        return { records: kept.map(toRecord), next };
      },
    );
  /** The position of a record; if it was removed, that of the nearest id, which is about as old. */
  const findPlace = (id: string): MaybePromise<number> => {
    const [nearest, direction] = order === 'ASC' ? ['<=', 'DESC'] : ['>=', 'ASC'];
    const found = sql.read(
      `SELECT seq FROM ${name} WHERE id ${nearest} $1 ORDER BY id ${direction} LIMIT 1`,
      [id],
    );
    return andThen(found, ([row]) => (row === undefined ? start : Number(row['seq'])));
  };

  return {
    read({ after = start, limit = pageRecordsMax } = {}) {
      if (typeof after === 'number') return readFrom(after, limit);
      return andThen(findPlace(after), (place) => readFrom(place, limit));
    },
  };
}
