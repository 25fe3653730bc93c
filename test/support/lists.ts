/** Lists of the store in tests. */

import type { List } from '../../dist/store/list.js';
import type { Author } from '../../dist/store/model.js';
import type { Related, Store } from '../../dist/store/store.js';

/** All records of a list, page by page. */
export async function allOf<T>(list: List<T>): Promise<readonly T[]> {
  const first = await list.read();
  const records = [...first.records];
  for (let page = first; page.next !== undefined; records.push(...page.records)) {
    page = await page.next();
  }
  return records;
}

/** What a store with `related` reads with one statement, read one by one. */
export function separately({ posts, comments, authors }: Store): Related {
  const groups = async <T>(
    ids: readonly string[],
    read: (id: string) => Promise<T>,
  ): Promise<Map<string, T>> => {
    const found = new Map<string, T>();
    for (const id of ids) found.set(id, await read(id));
    return found;
  };
  return {
    async authors(ids) {
      const found = new Map<string, Author>();
      for (const id of ids) {
        const author = await authors.find(id);
        if (author !== undefined) found.set(id, author);
      }
      return found;
    },
    commentsOfPosts: (ids) => groups(ids, (id) => allOf(comments.ofPost(id))),
    postsOfAuthors: (ids) => groups(ids, (id) => allOf(posts.ofAuthor(id))),
  };
}
