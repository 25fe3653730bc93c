/**
 * Records as one response reads them: those that exist for its reader (`domain/readers.ts`).
 * Versions are noted before a read; a response is reused while they are the same. A version is the
 * count of changes in a slot (`store/changes.ts`): a record has a slot by its id, the list of an
 * owner by the owner's id, any other list by its area. A response can be made only from what is
 * noted, because its handler or resolver gets nothing else.
 */

import { mayRead, type Reader, type Records, toReadable } from '../domain/readers.ts';
import { andThen } from '../maybe-promise.ts';
import type { Area, Changes } from '../store/changes.ts';
import type { Post, PostStatus } from '../store/model.ts';
import type { List, Store } from '../store/store.ts';

/** Limit for the slots of a response: what it reads beyond them is noted by area. */
const slotsMax = 128;

interface TrackedOptions {
  /** Required, so that nobody forgets it: undefined reads everything. */
  readonly reader: Reader | undefined;
  /** Identifies this process. */
  readonly run?: string;
  /** If given, each read fails with it. */
  readonly fault?: Error | undefined;
}

export class TrackedRecords implements Records {
  readonly reader: Reader | undefined;
  /** True if another reader may get another response: of what is published, all get the same. */
  isPersonal = false;
  readonly #store: Store;
  readonly #run: string;
  readonly #fault: Error | undefined;
  readonly #changes: Changes;
  /** The slots that were noted. An array: it is read far more often than it grows. */
  readonly slots: number[] = [];
  /** The sum of the counts, each as it was when its slot was noted. */
  #sum: number;

  constructor(store: Store, { reader, run = '', fault }: TrackedOptions) {
    this.reader = reader;
    this.#store = store;
    this.#run = run;
    this.#fault = fault;
    this.#changes = store.changes();
    this.#sum = this.#changes.sumOf([]);
  }

  get posts(): Records['posts'] {
    return {
      list: (filter) => {
        const { author, status } = toReadable(filter, this.reader);
        this.#noteStatus(status);
        const { posts } = this.note('posts', author);
        if (author !== undefined) return posts.ofAuthor(author, status);
        return status === undefined ? posts.all : posts.ofStatus(status);
      },
      find: (id) => {
        const found = this.note('posts', id).posts.find(id);
        return this.reader === undefined ? found : andThen(found, (post) => this.#show(post));
      },
    };
  }
  get comments(): Records['comments'] {
    return {
      find: (id) =>
        andThen(this.note('comments', id).comments.find(id), (comment) => {
          if (comment === undefined) return undefined;
          // The change that removes its post with it counts at the post's list of comments.
          this.note('comments', comment.postId);
          if (this.reader === undefined) return comment;
          return andThen(this.posts.find(comment.postId), (post) => post && comment);
        }),
      ofPost: ({ id }) => this.note('comments', id).comments.ofPost(id),
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
    return this.#store.changes().sumOf(this.slots) === this.#sum;
  }

  /**
   * Identifies the state that was read, among reads of the same slots. Undefined if other processes
   * may have changed the state, or if the version would tell of changes that do not exist for the
   * reader.
   */
  get version(): string | undefined {
    const isKnown = this.#store.readChanges === undefined && this.reader === undefined;
    return isKnown ? `${this.#run}-${this.#sum}` : undefined;
  }

  #noteStatus(status: PostStatus | undefined): void {
    this.isPersonal ||= this.reader !== undefined && status !== 'PUBLISHED';
  }

  #show(post: Post | undefined): Post | undefined {
    if (post !== undefined) this.#noteStatus(post.status);
    return mayRead(this.reader, post) ? post : undefined;
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
    const ofArea = this.#changes.slotOf(area);
    const isSmall = id !== undefined && this.slots.length < slotsMax;
    const slot = isSmall ? this.#changes.slotOf(area, id) : ofArea;
    // The count of an area includes those of its records.
    if (this.slots.includes(slot) || this.slots.includes(ofArea)) return this.#store;
    this.slots.push(slot);
    this.#sum += this.#changes.at(slot);
    return this.#store;
  }
}
