/**
 * Reading related records without N+1: the first of a list's posts that is asked for its author or
 * its comments loads those of the whole list, from a store that reads them together. From any other
 * each is read by itself, as a value.
 */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { Author, Comment, Post } from '../../store/model.ts';
import type { Records, Related } from '../../store/store.ts';
import { readList, type ReadTools } from './read-list.ts';

/** Related records, for one operation. */
export class Loaders {
  readonly #store: Records;
  readonly #related: Related | undefined;
  readonly #tools: ReadTools;
  readonly #authors: Loader<Author>;
  readonly #comments: Loader<readonly Comment[]>;
  readonly #posts: Loader<readonly Post[]>;

  constructor(store: Records, tools: ReadTools) {
    const { related } = store;
    const { budget } = tools;
    this.#store = store;
    this.#related = related;
    this.#tools = tools;
    this.#comments = new Loader({
      findOne: (id) => readList(store.comments.ofPost(id), tools),
      findAll: (ids) => related?.commentsOfPosts(ids, budget.left),
    });
    this.#authors = new Loader({
      findOne: (id) => store.authors.find(id),
      findAll: (ids) =>
        andThen(related?.authors(ids), (found) => {
          this.#posts.expect(() => [...(found?.keys() ?? [])]);
          return found;
        }),
    });
    this.#posts = new Loader({
      findOne: (id) =>
        andThen(readList(store.posts.ofAuthor(id), tools), (list) => {
          this.expectPosts(list);
          return list;
        }),
      findAll: (ids) =>
        andThen(related?.postsOfAuthors(ids, budget.left), (found) => {
          for (const list of found?.values() ?? []) this.expectPosts(list);
          return found;
        }),
    });
  }

  /** Announces posts that an operation is about to read: what belongs to them is loaded at once. */
  expectPosts(posts: readonly Post[]): void {
    if (this.#related === undefined) return;
    this.#comments.expect(() => posts.map((post) => post.id));
    this.#authors.expect(() => posts.map((post) => post.authorId));
  }

  author({ authorId: id }: Post): MaybePromise<Author | undefined> {
    if (id === null) return undefined;
    return this.#related === undefined ? this.#store.authors.find(id) : this.#authors.load(id);
  }

  comments({ id }: Post): MaybePromise<readonly Comment[]> {
    if (this.#related === undefined) {
      return readList(this.#store.comments.ofPost(id), this.#tools);
    }
    return andThen(this.#comments.load(id), orNone<Comment>);
  }

  /** The posts of one author, newest first. */
  posts({ id }: Author): MaybePromise<readonly Post[]> {
    return andThen(this.#posts.load(id), orNone<Post>);
  }
}

/** How a loader reads: one record, or all expected ones with one call of the store. */
interface Source<V> {
  readonly findOne: (id: string) => MaybePromise<V | undefined>;
  /** Undefined where all of them would be too many: they are read one by one then. */
  readonly findAll: (ids: readonly string[]) => MaybePromise<Batch<V>>;
}
type Batch<V> = ReadonlyMap<string, V> | undefined;

/** Reads all expected ids with the first one that is asked for and was not read yet. */
class Loader<V> {
  readonly #source: Source<V>;
  /** Every id that was read together with others, with the records of that batch. */
  readonly #batches = new Map<string, MaybePromise<Batch<V>>>();
  /** What was read by itself. */
  readonly #singles = new Map<string, MaybePromise<V | undefined>>();
  #expected: (() => readonly (string | null)[])[] = [];

  constructor(source: Source<V>) {
    this.#source = source;
  }

  /** Names ids that are likely to be asked for; nothing is read, or even listed, yet. */
  expect(ids: () => readonly (string | null)[]): void {
    this.#expected.push(ids);
  }

  load(id: string): MaybePromise<V | undefined> {
    const known = this.#batches.get(id);
    if (known === undefined && this.#expected.length === 0) return this.#readOne(id);
    return andThen(known ?? this.#readExpected(id), (found) =>
      found === undefined ? this.#readOne(id) : found.get(id),
    );
  }

  #readOne(id: string): MaybePromise<V | undefined> {
    if (!this.#singles.has(id)) this.#singles.set(id, this.#source.findOne(id));
    return this.#singles.get(id);
  }

  #readExpected(id: string): MaybePromise<Batch<V>> {
    const ids = new Set([id]);
    for (const list of this.#expected) {
      for (const each of list()) if (each !== null && !this.#batches.has(each)) ids.add(each);
    }
    this.#expected = [];
    const batch = this.#source.findAll([...ids]);
    for (const each of ids) this.#batches.set(each, batch);
    return batch;
  }
}

function orNone<T>(list: readonly T[] | undefined): readonly T[] {
  return list ?? [];
}
