/** Chance that can be had again: the same seed gives the same row of numbers. */

export interface Random {
  /** A whole number from 0 up to, and without, `end`. */
  below(end: number): number;
  /** True once in so many times. */
  oneIn(times: number): boolean;
  pick<T>(items: readonly T[]): T;
  bytes(count: number): Buffer;
}

/** A congruential walk whose steps are stirred well: enough for choosing, useless for secrets. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let value = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
    return (value ^ (value >>> 16)) >>> 0;
  };
  const below = (end: number): number => Math.floor((next() / 2 ** 32) * end);
  return {
    below,
    oneIn: (times) => below(times) === 0,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('there is nothing to pick from');
      return item;
    },
    bytes: (count) => Buffer.from(Array.from({ length: count }, () => below(256))),
  };
}
