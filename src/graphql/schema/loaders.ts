/**
 * Reading related records without N+1: the first of a list's posts that is asked for its author or
 * its comments loads those of the whole list. From a store that answers at once each is read by
 * itself, as a value.
 */

import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { Author, Comment, Post } from '../../store/model.ts';
import type { Records } from '../../store/store.ts';

/** Related records, for one operation. */
export class Loaders {
  readonly #store: Records;
  readonly #authors: Loader<Author>;
  readonly #comments: Loader<readonly Comment[]>;
  readonly #posts: Loader<readonly Post[]>;

  constructor(store: Records) {
    this.#store = store;
    this.#comments = new Loader((ids) => store.comments.byPosts(ids));
    this.#authors = new Loader((ids) =>
      andThen(store.authors.byIds(ids), (found) => {
        this.#posts.expect(() => [...found.keys()]);
        return found;
      }),
    );
    this.#posts = new Loader((ids) =>
      andThen(store.posts.byAuthors(ids), (found) => {
        for (const list of found.values()) this.expectPosts(list);
        return found;
      }),
    );
  }

  /** Announces posts that an operation is about to read: what belongs to them is loaded at once. */
  expectPosts(posts: readonly Post[]): void {
    if (this.#store.answersAtOnce) return;
    this.#comments.expect(() => posts.map((post) => post.id));
    this.#authors.expect(() => posts.map((post) => post.authorId));
  }

  author({ authorId: id }: Post): MaybePromise<Author | undefined> {
    if (id === null) return undefined;
    return this.#store.answersAtOnce ? this.#store.authors.find(id) : this.#authors.load(id);
  }

  comments({ id }: Post): MaybePromise<readonly Comment[]> {
    const { answersAtOnce, comments } = this.#store;
    return andThen(answersAtOnce ? comments.list(id) : this.#comments.load(id), orNone<Comment>);
  }

  /** The posts of one author, newest first. */
  posts({ id }: Author): MaybePromise<readonly Post[]> {
    return andThen(this.#posts.load(id), orNone<Post>);
  }
}

/** Reads all expected ids with the first one that is asked for and was not read yet. */
class Loader<V> {
  readonly #findAll: (ids: readonly string[]) => MaybePromise<ReadonlyMap<string, V>>;
  /** Every id that was read, with the records that were read together with it. */
  readonly #known = new Map<string, MaybePromise<ReadonlyMap<string, V>>>();
  #expected: (() => readonly (string | null)[])[] = [];

  /** `findAll` reads records with one call of the store. */
  constructor(findAll: (ids: readonly string[]) => MaybePromise<ReadonlyMap<string, V>>) {
    this.#findAll = findAll;
  }

  /** Names ids that are likely to be asked for; nothing is read, or even listed, yet. */
  expect(ids: () => readonly (string | null)[]): void {
    this.#expected.push(ids);
  }

  load(id: string): MaybePromise<V | undefined> {
    return andThen(this.#known.get(id) ?? this.#read(id), (found) => found.get(id));
  }

  #read(id: string): MaybePromise<ReadonlyMap<string, V>> {
    const ids = new Set([id]);
    for (const list of this.#expected) {
      for (const each of list()) if (each !== null && !this.#known.has(each)) ids.add(each);
    }
    this.#expected = [];
    const found = this.#findAll([...ids]);
    for (const each of ids) this.#known.set(each, found);
    return found;
  }
}

function orNone<T>(list: readonly T[] | undefined): readonly T[] {
  return list ?? [];
}
