/** Lists of comments that are made of two, or leave out what does not exist for the reader. */

import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Comment } from '../store/model.ts';
import type { List, Page } from '../store/store.ts';

/** What `select` leaves of the records of each page. */
export function selectShown<T>(
  list: List<Comment>,
  select: (comments: readonly Comment[]) => MaybePromise<readonly T[]>,
  recordsMax?: number,
): List<T> {
  const toPage = ({ records, next }: Page<Comment>): MaybePromise<Page<T>> =>
    andThen(select(records), (shown) => ({
      records: shown,
      leftOut: records.length - shown.length,
      next: next && (() => andThen(next(), toPage)),
    }));
  return {
    read: ({ after, limit } = {}) => {
      // One more, so that a page that leaves out nothing tells whether there is a next one.
      const most = limit === undefined ? recordsMax : Math.min(limit + 1, recordsMax ?? Infinity);
      return andThen(list.read({ after, limit: most }), toPage);
    },
  };
}

/** The records of one list, and then of another one. `isInSecond`: whether that has a record. */
export function joinLists<T>(
  first: List<T>,
  second: List<T>,
  isInSecond: (id: string) => MaybePromise<boolean>,
): List<T> {
  return {
    read(range = {}) {
      const { after, limit } = range;
      const join = ({ records, leftOut = 0, next }: Page<T>): Page<T> => ({
        records,
        leftOut,
        next: next ? () => andThen(next(), join) : () => second.read({ limit }),
      });
      const isSecond = typeof after === 'string' && isInSecond(after);
      return andThen(isSecond, (isThere) =>
        isThere ? second.read(range) : andThen(first.read(range), join),
      );
    },
  };
}
