/** A map with a limit on the sum of its values' sizes. It removes the oldest entries first. */
export class BoundedMap<V> {
  readonly #sizeMax: number;
  /** A Map iterates in insertion order: the oldest entry comes first. */
  readonly #entries = new Map<string, { readonly value: V; readonly size: number }>();
  #size = 0;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Like `get`, and makes the entry the newest, so that entries in use stay. */
  use(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
    return entry?.value;
  }

  /** A value larger than the limit of the whole map is not kept. */
  set(key: string, value: V, size = 1): void {
    this.delete(key);
    if (size > this.#sizeMax) return;
    for (const oldest of this.#entries.keys()) {
      if (this.#size + size <= this.#sizeMax) break;
      this.delete(oldest);
    }
    this.#entries.set(key, { value, size });
    this.#size += size;
  }

  delete(key: string): void {
    this.#size -= this.#entries.get(key)?.size ?? 0;
    this.#entries.delete(key);
  }
}
