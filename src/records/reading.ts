/** Records as one response reads them: remembers which areas were read, and in which versions. */

import type {
  Area,
  Articles,
  Authors,
  Comments,
  Posts,
  Records,
  Store,
  Todos,
} from '../store/store.ts';

/**
 * Using the property of an area notes its version before anything is read. A response can therefore
 * not be made from an area that is not noted.
 */
export class Reading implements Records {
  readonly #store: Store;
  readonly #run: string;
  readonly #seen: Partial<Record<Area, number | undefined>> = {};

  /** `run` identifies this process. */
  constructor(store: Store, run: string) {
    this.#store = store;
    this.#run = run;
  }

  get posts(): Posts {
    return this.#open('posts');
  }
  get comments(): Comments {
    this.#open('posts');
    return this.#open('comments');
  }
  get authors(): Authors {
    return this.#open('authors');
  }
  get todos(): Todos {
    return this.#open('todos');
  }
  get articles(): Articles {
    return this.#open('articles');
  }

  /** True while nothing that was read has been written to, as far as the store can tell. */
  isCurrent(): boolean {
    const now = this.#store.versions();
    if (now === undefined) return false;
    for (const area in this.#seen) {
      if (this.#seen[area as Area] !== now[area as Area]) return false; // an area: see #open
    }
    return true;
  }

  /** Identifies the state that was read; undefined if the store cannot tell. */
  get version(): string | undefined {
    if (this.#store.versions() === undefined) return undefined;
    return `${this.#run}-${Object.values(this.#seen).join('-')}`;
  }

  #open<A extends Area>(area: A): Store[A] {
    if (!(area in this.#seen)) this.#seen[area] = this.#store.versions()?.[area];
    return this.#store[area];
  }
}
