/** Versions of the areas of a store. */

import type { Area, Versions } from './store.ts';

export function createVersions(): Versions {
  return { posts: 0, comments: 0, authors: 0, todos: 0, articles: 0 };
}

/** A Map that increments the version of its area with every change. */
export class VersionedMap<K, V> extends Map<K, V> {
  readonly #versions: Versions;
  readonly #area: Area;

  constructor(versions: Versions, area: Area) {
    super();
    this.#versions = versions;
    this.#area = area;
  }

  override set(key: K, value: V): this {
    this.#versions[this.#area] += 1;
    return super.set(key, value);
  }

  override delete(key: K): boolean {
    this.#versions[this.#area] += 1;
    return super.delete(key);
  }
}
