/** A map within a bound on the sum of its values' sizes: the oldest go first. */
export class BoundedMap<V> {
  readonly #sizeMax: number;
  /** In the order in which they came: a Map keeps it. */
  readonly #entries = new Map<string, { readonly value: V; readonly size: number }>();
  #size = 0;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** The same, after which it is the newest: what is used stays. */
  use(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
    return entry?.value;
  }

  /** What is larger than the whole bound is not kept. */
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
