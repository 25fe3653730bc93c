/** The comments after a place (R41) in SQL, for both drivers. A place is the value of `seq`. */

import type { MaybePromise } from '../../maybe-promise.ts';
import type { AfterRange, PlacedPage } from '../comments-after.ts';
import { createSource } from './lists.ts';
import { namesOf, toRecord } from './rows.ts';
import type { PageQuery, Sql } from './statements.ts';

export function createReadAfter(sql: Sql) {
  const ownerAt = namesOf('comments').indexOf('post_id');
  const placeAt = namesOf('comments').length;
  const createReader = (owner?: string) => {
    const { place, from } = createSource(sql, { table: 'comments', owner });
    const toText: PageQuery['toText'] = (selected, values) =>
      `SELECT ${selected}, ${place} AS place FROM ${from(false, values)}`;
    const list = { table: 'comments', order: 'ASC', owner, afterType: 'bigint' } as const;
    return sql.createPages<PlacedPage>({ ...list, toText }, ({ rows, isCut }, start) => ({
      found: rows.map((cells) => {
        if (start.owner !== undefined) cells[ownerAt] = start.owner;
        return { place: Number(cells[placeAt]), comment: toRecord.comments(cells) };
      }),
      isLast: !isCut && rows.length < start.limit,
    }));
  };
  const [ofAll, ofPost] = [createReader(), createReader('post_id')];
  return (after: number, { postId, limit }: AfterRange): MaybePromise<PlacedPage> =>
    (postId === undefined ? ofAll : ofPost)({ owner: postId, after, limit });
}
