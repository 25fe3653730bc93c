/**
 * Reading related records without N+1: the first of a list's posts that is asked for its author or
 * its comments loads those of the whole list. From a store that answers at once each is read by
 * itself, as a value.
 */

import { andThen, isPromise, type MaybePromise } from '../../maybe-promise.ts';
import type { Author, Comment, Post } from '../../store/model.ts';
import type { Records } from '../../store/store.ts';

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

/** Loaders for one operation. */
export function createLoaders(store: Records): Loaders {
  return store.answersAtOnce ? new DirectLoaders(store) : new BatchLoaders(store);
}

/** Reads each record by itself, from a store that returns values: batching would save nothing. */
class DirectLoaders implements Loaders {
  readonly #store: Records;
  /** Made of many posts each: once for an author. */
  #postsOfAuthor: Map<string, MaybePromise<readonly Post[]>> | undefined;

  constructor(store: Records) {
    this.#store = store;
  }

  expectPosts(): void {
    // Nothing to load in advance.
  }

  author({ authorId }: Post): MaybePromise<Author | undefined> {
    return authorId === null ? undefined : this.#store.authors.find(authorId);
  }

  comments({ id }: Post): MaybePromise<readonly Comment[]> {
    return orElse(this.#store.comments.list(id), noComments);
  }

  posts({ id }: Author): MaybePromise<readonly Post[]> {
    const lists = (this.#postsOfAuthor ??= new Map<string, MaybePromise<readonly Post[]>>());
    const known = lists.get(id);
    if (known !== undefined) return known;
    const list = andThen(this.#store.posts.byAuthors([id]), (found) => found.get(id) ?? noPosts);
    lists.set(id, list);
    return list;
  }
}

/** Reads related records in batches, and keeps them. */
class BatchLoaders implements Loaders {
  readonly #comments: Loader<readonly Comment[]>;
  readonly #authors: Loader<Author>;
  readonly #posts: Loader<readonly Post[]>;

  constructor({ comments, authors, posts }: Records) {
    this.#comments = new Loader({
      find: (id) => comments.list(id),
      findAll: (ids) => comments.byPosts(ids),
    });
    this.#authors = new Loader({
      find: (id) => authors.find(id),
      findAll: (ids) =>
        andThen(authors.byIds(ids), (found) => {
          this.#posts.expect(() => [...found.keys()]);
          return found;
        }),
    });
    const byAuthors = (
      ids: readonly string[],
    ): MaybePromise<ReadonlyMap<string, readonly Post[]>> =>
      andThen(posts.byAuthors(ids), (found) => {
        for (const list of found.values()) this.expectPosts(list);
        return found;
      });
    this.#posts = new Loader({
      find: (id) => andThen(byAuthors([id]), (found) => found.get(id)),
      findAll: byAuthors,
    });
  }

  expectPosts(list: readonly Post[]): void {
    this.#comments.expect(() => list.map((post) => post.id));
    this.#authors.expect(() => list.map((post) => post.authorId));
  }

  author({ authorId }: Post): MaybePromise<Author | undefined> {
    return authorId === null ? undefined : this.#authors.load(authorId);
  }

  comments({ id }: Post): MaybePromise<readonly Comment[]> {
    return orElse(this.#comments.load(id), noComments);
  }

  posts({ id }: Author): MaybePromise<readonly Post[]> {
    return orElse(this.#posts.load(id), noPosts);
  }
}

/** How a loader reads: one record, or all expected ones with one call of the store. */
interface Source<V> {
  readonly find: (id: string) => MaybePromise<V | undefined>;
  readonly findAll: (ids: readonly string[]) => MaybePromise<ReadonlyMap<string, V>>;
}

/** The records of one call of the store. */
type Batch<V> = Pick<ReadonlyMap<string, V>, 'get'>;

/** Reads all expected ids with the first one that is asked for and was not read yet. */
class Loader<V> {
  readonly #source: Source<V>;
  /** Every id that was read, with the batch that it was read in. */
  readonly #known = new Map<string, MaybePromise<Batch<V>>>();
  #expected: (() => readonly (string | null)[])[] = [];

  constructor(source: Source<V>) {
    this.#source = source;
  }

  /** Names ids that are likely to be asked for; nothing is read, or even listed, yet. */
  expect(ids: () => readonly (string | null)[]): void {
    this.#expected.push(ids);
  }

  load(id: string): MaybePromise<V | undefined> {
    const batch = this.#known.get(id) ?? this.#read(id);
    return isPromise(batch) ? batch.then((found) => found.get(id)) : batch.get(id);
  }

  #read(id: string): MaybePromise<Batch<V>> {
    return this.#expected.length === 0 ? this.#readOne(id) : this.#readExpected(id);
  }

  #readOne(id: string): MaybePromise<Batch<V>> {
    const batch = andThen(this.#source.find(id), (value) => ({ get: () => value }));
    this.#known.set(id, batch);
    return batch;
  }

  #readExpected(id: string): MaybePromise<Batch<V>> {
    const ids = new Set([id]);
    for (const list of this.#expected) {
      for (const each of list()) if (each !== null && !this.#known.has(each)) ids.add(each);
    }
    const batch = this.#source.findAll([...ids]);
    this.#expected = [];
    for (const each of ids) this.#known.set(each, batch);
    return batch;
  }
}

function orElse<T>(value: MaybePromise<T | undefined>, fallback: T): MaybePromise<T> {
  if (isPromise(value)) return value.then((found) => found ?? fallback);
  return value ?? fallback;
}
