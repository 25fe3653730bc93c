/**
 * Avoids N+1 reads of related records. The first post of a list whose author or comments are needed
 * loads those of the whole list, if the store can read them together. Other stores read each one
 * separately, and return values instead of promises.
 */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { Author, Comment, Post } from '../../store/model.ts';
import type { Records } from '../../store/store.ts';
import { chargeRecords, readList, type ReadTools } from './read-list.ts';

/** Loads related records, for one operation. */
export class Loaders {
  readonly #authors: Loader<Author>;
  readonly #comments: Loader<readonly Comment[]>;
  readonly #posts: Loader<readonly Post[]>;

  constructor(store: Records, tools: ReadTools) {
    const { related } = store;
    const { budget } = tools;
    const held = <T>(found: Batch<readonly T[]>): typeof found => {
      for (const list of found?.values() ?? []) chargeRecords(list, tools);
      return found;
    };
    this.#comments = new Loader(
      (id) => readList(store.comments.ofPost(id), tools),
      related && ((ids) => andThen(related.commentsOfPosts(ids, budget.objectsLeft), held)),
    );
    this.#authors = new Loader(
      (id) => store.authors.find(id),
      related &&
        ((ids) =>
          andThen(related.authors(ids), (found) => {
            this.#posts.expect(() => [...found.keys()]);
            return found;
          })),
    );
    this.#posts = new Loader(
      (id) =>
        andThen(readList(store.posts.ofAuthor(id), tools), (list) => {
          this.expectPosts(list);
          return list;
        }),
      related &&
        ((ids) =>
          andThen(related.postsOfAuthors(ids, budget.objectsLeft), (found) => {
            for (const list of found?.values() ?? []) this.expectPosts(list);
            return held(found);
          })),
    );
  }

  /** Announces the posts of a list, so that their related records are loaded together. */
  expectPosts(posts: readonly Post[]): void {
    this.#comments.expect(() => posts.map((post) => post.id));
    this.#authors.expect(() => posts.map((post) => post.authorId));
  }

  author({ authorId }: Post): MaybePromise<Author | undefined> {
    return authorId === null ? undefined : this.#authors.load(authorId);
  }

  /** Returns undefined for a post without comments. */
  comments({ id }: Post): MaybePromise<readonly Comment[] | undefined> {
    return this.#comments.load(id);
  }

  /** Returns the posts of an author, newest first; undefined if there are none. */
  posts({ id }: Author): MaybePromise<readonly Post[] | undefined> {
    return this.#posts.load(id);
  }
}

type FindOne<V> = (id: string) => MaybePromise<V | undefined>;
/** Returns undefined if all of them would be too many: they are then read one by one. */
type FindAll<V> = (ids: readonly string[]) => MaybePromise<Batch<V>>;
type Batch<V> = ReadonlyMap<string, V> | undefined;

/** Reads all expected ids together, when the first of them is loaded. */
class Loader<V> {
  readonly #findOne: FindOne<V>;
  readonly #findAll: FindAll<V> | undefined;
  /** The batch that each id was read with. */
  readonly #batches = new Map<string, MaybePromise<Batch<V>>>();
  /** Records that were read separately. */
  readonly #singles = new Map<string, MaybePromise<V | undefined>>();
  #expected: (() => readonly (string | null)[])[] = [];

  /** Without `findAll` each record is read separately. */
  constructor(findOne: FindOne<V>, findAll: FindAll<V> | undefined) {
    this.#findOne = findOne;
    this.#findAll = findAll;
  }

  /** Adds ids that are likely to be loaded. `ids` is called when the first of them is. */
  expect(ids: () => readonly (string | null)[]): void {
    if (this.#findAll !== undefined) this.#expected.push(ids);
  }

  load(id: string): MaybePromise<V | undefined> {
    const known = this.#batches.get(id);
    if (known === undefined && this.#expected.length === 0) return this.#readOne(id);
    return andThen(known ?? this.#readExpected(id), (found) =>
      found === undefined ? this.#readOne(id) : found.get(id),
    );
  }

  #readOne(id: string): MaybePromise<V | undefined> {
    if (!this.#singles.has(id)) this.#singles.set(id, this.#findOne(id));
    return this.#singles.get(id);
  }

  #readExpected(id: string): MaybePromise<Batch<V>> {
    const ids = new Set([id]);
    for (const list of this.#expected) {
      for (const each of list()) if (each !== null && !this.#batches.has(each)) ids.add(each);
    }
    this.#expected = [];
    const batch = this.#findAll?.([...ids]);
    for (const each of ids) this.#batches.set(each, batch);
    return batch;
  }
}
