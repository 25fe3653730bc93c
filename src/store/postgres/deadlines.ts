/** Time limits of many things that have the same length, with one timer for all. */

export interface Deadlines<T> {
  readonly size: number;
  /** Starts the time of an item. */
  add(item: T): void;
  /** Returns false if the item has expired, or was never added. */
  delete(item: T): boolean;
}

/** Calls `expire` with each item that is not deleted in time. */
export function createDeadlines<T>(milliseconds: number, expire: (item: T) => void): Deadlines<T> {
  /** When each item expires, in this order. */
  const ends = new Map<T, number>();
  let timer: NodeJS.Timeout | undefined;
  const check = (): void => {
    timer = undefined;
    for (const [item, end] of ends) {
      const rest = end - performance.now();
      if (rest > 0) {
        start(rest);
        return;
      }
      ends.delete(item);
      expire(item);
    }
  };
  const start = (rest: number): void => {
    timer ??= setTimeout(check, rest).unref();
  };
  return {
    get size() {
      return ends.size;
    },
    add(item) {
      ends.set(item, performance.now() + milliseconds);
      start(milliseconds);
    },
    delete: (item) => ends.delete(item),
  };
}
