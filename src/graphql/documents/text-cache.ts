/** Values kept by a text, within a number of entries and of characters; the longest unused goes. */

export interface TextCache<V> {
  get(text: string): V | undefined;
  /** `length`: the characters that the entry stands for. One that is too long is not kept. */
  set(text: string, value: V, length: number): void;
}

export interface TextCacheOptions {
  readonly entriesMax: number;
  /** Characters of all entries together. */
  readonly lengthMax: number;
}

interface Entry<V> {
  readonly value: V;
  readonly length: number;
}

export function createTextCache<V>({ entriesMax, lengthMax }: TextCacheOptions): TextCache<V> {
  /** In the order of use: a Map keeps the order in which its keys came. */
  const entries = new Map<string, Entry<V>>();
  let total = 0;

  const remove = (text: string, { length }: Entry<V>): void => {
    entries.delete(text);
    total -= length;
  };

  return {
    get(text) {
      const entry = entries.get(text);
      if (entry !== undefined) {
        entries.delete(text);
        entries.set(text, entry);
      }
      return entry?.value;
    },
    set(text, value, length) {
      const old = entries.get(text);
      if (old !== undefined) remove(text, old);
      if (length > lengthMax) return;
      for (const [oldest, entry] of entries) {
        if (entries.size < entriesMax && total + length <= lengthMax) break;
        remove(oldest, entry);
      }
      entries.set(text, { value, length });
      total += length;
    },
  };
}
