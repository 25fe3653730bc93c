/**
 * Reading related records without N+1: the first of a list's posts that is asked for its author or
 * its comments loads those of the whole list. Values stay values: a store that answers at once
 * costs no promise.
 */

import { andThen, isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { Author, Comment, Post } from '../store/model.ts';
import type { Store } from '../store/store.ts';

export interface Loaders {
  /** Announces posts that an operation is about to read: what belongs to them is loaded at once. */
  expectPosts(posts: readonly Post[]): void;
  author(post: Post): MaybePromise<Author | undefined>;
  comments(post: Post): MaybePromise<readonly Comment[]>;
  /** The posts of one author, newest first. */
  posts(author: Author): MaybePromise<readonly Post[]>;
}

const noComments: readonly Comment[] = [];
const noPosts: readonly Post[] = [];

/** Loaders for one operation: what they have read, they keep. */
export function createLoaders(store: Store): Loaders {
  const comments = createLoader((ids) => store.comments.byPosts(ids));
  const authors = createLoader((ids) =>
    andThen(store.authors.byIds(ids), (found) => {
      posts.expect(() => [...found.keys()]);
      return found;
    }),
  );
  const posts = createLoader((ids) =>
    andThen(store.posts.byAuthors(ids), (found) => {
      for (const list of found.values()) expectPosts(list);
      return found;
    }),
  );

  function expectPosts(list: readonly Post[]): void {
    comments.expect(() => list.map((post) => post.id));
    authors.expect(() => list.map((post) => post.authorId));
  }

  return {
    expectPosts,
    author: ({ authorId }) => (authorId === null ? undefined : authors.load(authorId)),
    comments: ({ id }) => orElse(comments.load(id), noComments),
    posts: ({ id }) => orElse(posts.load(id), noPosts),
  };
}

interface Loader<V> {
  /** Names ids that are likely to be asked for; nothing is read, or even listed, yet. */
  expect(ids: () => readonly (string | null)[]): void;
  load(id: string): MaybePromise<V | undefined>;
}

/** Reads all expected ids with the first one that is asked for and was not read yet. */
function createLoader<V>(
  read: (ids: readonly string[]) => MaybePromise<ReadonlyMap<string, V>>,
): Loader<V> {
  /** Every id that was read, with the batch that it was read in. */
  const known = new Map<string, MaybePromise<ReadonlyMap<string, V>>>();
  let expected: (() => readonly (string | null)[])[] = [];

  function readWith(id: string): MaybePromise<ReadonlyMap<string, V>> {
    const ids = new Set([id]);
    for (const list of expected) {
      for (const each of list()) if (each !== null && !known.has(each)) ids.add(each);
    }
    expected = [];
    const batch = read([...ids]);
    for (const each of ids) known.set(each, batch);
    return batch;
  }

  return {
    expect(ids) {
      expected.push(ids);
    },
    load(id) {
      const batch = known.get(id) ?? readWith(id);
      return isPromise(batch) ? batch.then((found) => found.get(id)) : batch.get(id);
    },
  };
}

function orElse<T>(value: MaybePromise<T | undefined>, fallback: T): MaybePromise<T> {
  if (isPromise(value)) return value.then((found) => found ?? fallback);
  return value ?? fallback;
}
