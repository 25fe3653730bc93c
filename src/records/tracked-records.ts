/**
 * Records as one response reads them. Versions are noted before a read; a response is reused while
 * they are the same. A version is the count of changes at a place (`store/changes.ts`): that of a
 * record by its id, of an owner's list by the owner, of any other list by its area. A response can
 * be made only from what is noted, because it gets nothing else.
 */

import { andThen } from '../maybe-promise.ts';
import type { Area, Changes } from '../store/changes.ts';
import type { List, Records, Store } from '../store/store.ts';

/** Beyond these, what a response reads is noted by its area. */
const placesMax = 128;

export class TrackedRecords implements Records {
  readonly #store: Store;
  readonly #run: string;
  readonly #fault: Error | undefined;
  readonly #changes: Changes;
  /** The places that were noted. An array: it is read far more often than it grows. */
  readonly places: number[] = [];
  /** The sum of the counts, each as it was when its place was noted. */
  #sum: number;

  /** `run` identifies this process. With `fault`, each read fails with it. */
  constructor(store: Store, run: string, fault?: Error) {
    this.#store = store;
    this.#run = run;
    this.#fault = fault;
    this.#changes = store.changes();
    this.#sum = this.#changes.sumOf([]);
  }

  get posts(): Records['posts'] {
    return {
      all: this.#all('posts', this.#store.posts.all),
      ofAuthor: (id, status) => this.note('posts', id).posts.ofAuthor(id, status),
      ofStatus: (status) => this.note('posts').posts.ofStatus(status),
      find: (id) => this.note('posts', id).posts.find(id),
    };
  }
  get comments(): Records['comments'] {
    return {
      find: (id) =>
        andThen(this.note('comments', id).comments.find(id), (comment) => {
          // The change that removes its post with it counts at the post's list of comments.
          if (comment !== undefined) this.note('comments', comment.postId);
          return comment;
        }),
      ofPost: (id) => this.note('comments', id).comments.ofPost(id),
    };
  }
  get authors(): Records['authors'] {
    return { find: (id) => this.note('authors', id).authors.find(id) };
  }
  get todos(): Records['todos'] {
    return {
      all: this.#all('todos', this.#store.todos.all),
      find: (id) => this.note('todos', id).todos.find(id),
    };
  }
  get articles(): Records['articles'] {
    return {
      all: this.#all('articles', this.#store.articles.all),
      find: (id) => this.note('articles', id).articles.find(id),
    };
  }

  /** True if nothing that was read has changed since. */
  isCurrent(): boolean {
    return this.#store.changes().sumOf(this.places) === this.#sum;
  }

  /**
   * Identifies the state that was read, if always the same places are; undefined if other processes
   * may have changed it.
   */
  get version(): string | undefined {
    return this.#store.readChanges === undefined ? `${this.#run}-${this.#sum}` : undefined;
  }

  #all<T>(area: Area, list: List<T>): List<T> {
    const note = (): List<T> => (this.note(area), list);
    return {
      read: (range) => note().read(range),
      readJson: (range, members) => note().readJson?.(range, members) ?? list.read(range),
      exceeds: (count, after) => note().exceeds(count, after),
    };
  }

  /** Call it before the read. `id`: of a record, or of the owner of a list. */
  note(area: Area, id?: string | number): Store {
    if (this.#fault !== undefined) throw this.#fault;
    const ofArea = this.#changes.placeOf(area);
    const isSmall = id !== undefined && this.places.length < placesMax;
    const place = isSmall ? this.#changes.placeOf(area, id) : ofArea;
    // The count of an area includes those of its records.
    if (this.places.includes(place) || this.places.includes(ofArea)) return this.#store;
    this.places.push(place);
    this.#sum += this.#changes.at(place);
    return this.#store;
  }
}
