/** The comments after a place (R41) in SQL, for both drivers. A place is the value of `seq`. */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { AfterRange, PlacedPage } from '../comments-after.ts';
import { createSource } from './lists.ts';
import { type Cells, namesOf, toRecord } from './rows.ts';
import type { PageQuery, Sql } from './statements.ts';

/** What is read: the comments after `from`, and of these the ones up to `upTo`. */
interface Span {
  readonly from: number;
  readonly upTo: number;
  readonly timeline?: number;
}

/** Several equal pages may share a statement: each caller leaves out what is behind its own cut. */
export function createReadAfter(sql: Sql) {
  const ownerAt = namesOf('comments').indexOf('post_id');
  const placeAt = namesOf('comments').length;
  const createReader = (owner?: string) => {
    const { place, from } = createSource(sql, 'comments', owner);
    const toText: PageQuery['toText'] = (selected, values) =>
      `SELECT ${selected}, ${place} AS place FROM ${from(false, values)}`;
    const list = { table: 'comments', order: 'ASC', owner, isAfterId: false } as const;
    return sql.createPages({ ...list, toText, members: undefined }, ({ rows, isCut }, start) => ({
      comments: (rows as readonly Cells[]).map((cells) => {
        if (start.owner !== undefined) cells[ownerAt] = start.owner;
        return { at: Number(cells[placeAt]), comment: toRecord.comments(cells) };
      }),
      isLast: !isCut && rows.length < start.limit,
    }));
  };
  const [ofAll, ofPost] = [createReader(), createReader('post_id')];
  return (
    { from: after, upTo, timeline }: Span,
    { postId, limit }: Omit<AfterRange, 'onCut'>,
  ): MaybePromise<PlacedPage> => {
    const page = (postId === undefined ? ofAll : ofPost)({ owner: postId, after, limit });
    return andThen(page, ({ comments, isLast }) => {
      const found = comments
        .filter(({ at }) => at <= upTo)
        .map(({ at, comment }) => ({ comment, place: { at, ...(timeline && { timeline }) } }));
      return { found, isLast: isLast || found.length < comments.length };
    });
  };
}
