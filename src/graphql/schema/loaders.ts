/**
 * Reading related records without N+1: the first of a list's posts that is asked for its author or
 * its comments loads those of the whole list, from a store that reads them together. From any other
 * each is read by itself, as a value.
 */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { Author, Comment, Post } from '../../store/model.ts';
import type { Records } from '../../store/store.ts';
import { hold, readList, type ReadTools } from './read-list.ts';

/** Related records, for one operation. */
export class Loaders {
  readonly #authors: Loader<Author>;
  readonly #comments: Loader<readonly Comment[]>;
  readonly #posts: Loader<readonly Post[]>;

  constructor(store: Records, tools: ReadTools) {
    const { related } = store;
    const { budget } = tools;
    const held = <T>(found: Batch<readonly T[]>): typeof found => {
      for (const list of found?.values() ?? []) hold(list, tools);
      return found;
    };
    this.#comments = new Loader(
      (id) => readList(store.comments.ofPost(id), tools),
      related && ((ids) => andThen(related.commentsOfPosts(ids, budget.left), held)),
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
          andThen(related.postsOfAuthors(ids, budget.left), (found) => {
            for (const list of found?.values() ?? []) this.expectPosts(list);
            return held(found);
          })),
    );
  }

  /** Announces posts that an operation is about to read: what belongs to them is loaded at once. */
  expectPosts(posts: readonly Post[]): void {
    this.#comments.expect(() => posts.map((post) => post.id));
    this.#authors.expect(() => posts.map((post) => post.authorId));
  }

  author({ authorId }: Post): MaybePromise<Author | undefined> {
    return authorId === null ? undefined : this.#authors.load(authorId);
  }

  /** Undefined where the post has none. */
  comments({ id }: Post): MaybePromise<readonly Comment[] | undefined> {
    return this.#comments.load(id);
  }

  /** The posts of one author, newest first; undefined where there are none. */
  posts({ id }: Author): MaybePromise<readonly Post[] | undefined> {
    return this.#posts.load(id);
  }
}

type FindOne<V> = (id: string) => MaybePromise<V | undefined>;
/** Undefined where all of them would be too many: they are read one by one then. */
type FindAll<V> = (ids: readonly string[]) => MaybePromise<Batch<V>>;
type Batch<V> = ReadonlyMap<string, V> | undefined;

/** Reads all expected ids with the first one that is asked for and was not read yet. */
class Loader<V> {
  readonly #findOne: FindOne<V>;
  readonly #findAll: FindAll<V> | undefined;
  /** Every id that was read together with others, with the records of that batch. */
  readonly #batches = new Map<string, MaybePromise<Batch<V>>>();
  /** What was read by itself. */
  readonly #singles = new Map<string, MaybePromise<V | undefined>>();
  #expected: (() => readonly (string | null)[])[] = [];

  /** Without `findAll` each is read by itself. */
  constructor(findOne: FindOne<V>, findAll: FindAll<V> | undefined) {
    this.#findOne = findOne;
    this.#findAll = findAll;
  }

  /** Names ids that are likely to be asked for; nothing is read, or even listed, yet. */
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
