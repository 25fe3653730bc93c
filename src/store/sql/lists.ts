/** Lists of one table in SQL, with keyset pagination: no statement stays open between two pages. */

import type { MaybePromise } from '../../maybe-promise.ts';
import { type List, type Page, pageRecordsMax } from '../store.ts';
import type { Row, Table } from './rows.ts';
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
  const [owned] = of ?? [];
  const name = `${sql.schema}${table}`;
  // Articles are ordered by id, other records by the order in which they were stored (R2).
  const key = table === 'articles' ? 'id' : 'seq';
  const [beyond, start] = order === 'ASC' ? ['>', 0] : ['<', Number.MAX_SAFE_INTEGER];
  /** The position of a record; if it was removed, that of the nearest id, about as old. */
  const placeOf = (id: string): string => {
    const [nearest, direction] = order === 'ASC' ? ['<=', 'DESC'] : ['>=', 'ASC'];
    return `coalesce((SELECT seq FROM ${name} WHERE id ${nearest} ${id}
      ORDER BY id ${direction} LIMIT 1), ${start})`;
  };
  const readFrom = (after: number | string, limit: number): MaybePromise<Page<T>> => {
    const kind = typeof after;
    return sql.readPage(
      {
        name: `${table} ${owned?.[1] ?? ''} ${order} ${kind}`,
        table,
        order,
        toText(columns, { owner, after: from, limit: rowsMax }) {
          const place = kind === 'number' ? from : placeOf(from);
          const rows = owned
            ? sql.ofOne(owned, order, { owner, place, limit: rowsMax })
            : `${name} WHERE ${key} ${beyond} ${place} ORDER BY ${key} ${order} LIMIT ${rowsMax}`;
          return `SELECT ${key} AS place, ${columns} FROM ${rows}`;
        },
        after,
        // One more row is read, to know whether there is a next page.
        limit: limit + 1,
        owner: of,
      },
      ({ rows, isCut }) => {
        const read = rows.slice(0, limit);
        const last = read.at(-1);
        const isLast = last === undefined || (!isCut && rows.length <= limit);
        const next = isLast ? undefined : () => readFrom(Number(last['place']), limit);
        return { records: read.map(toRecord), next };
      },
    );
  };
  return {
    read: ({ after = start, limit = pageRecordsMax } = {}) => readFrom(after, limit),
  };
}
