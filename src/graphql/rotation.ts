/**
 * Limits what is done at the same time, and is fair to its owners: of those that wait, each has one
 * work done in turn, however many more it has.
 *
 *     two at once; a has five works, then b comes with one: a1 a2 | a3 b1 a4 a5
 */

export type Rotation = ReturnType<typeof createRotation>;

export function createRotation(atOnceMax: number) {
  /** The works of each owner that wait. The first owner is next. */
  const waiting = new Map<object, (() => void)[]>();
  let running = 0;

  const wait = (owner: object): Promise<void> =>
    new Promise((start) => {
      const own = waiting.get(owner);
      if (own === undefined) waiting.set(owner, [start]);
      else own.push(start);
    });
  /** Starts what waits longest; it takes the place of what has ended. Returns false for nothing. */
  const startNext = (): boolean => {
    const [next] = waiting;
    if (next === undefined) return false;
    const [owner, own] = next;
    waiting.delete(owner);
    own.shift()?.();
    if (own.length > 0) waiting.set(owner, own);
    return true;
  };
  return {
    async run<T>(owner: object, work: () => Promise<T>): Promise<T> {
      if (running < atOnceMax) running += 1;
      else await wait(owner);
      try {
        return await work();
      } finally {
        if (!startNext()) running -= 1;
      }
    },
  };
}
