/** Counts failures by key, each for a minute from its first one, in bounded memory. */

export interface FailureCounts {
  /** Within the window of this key. */
  count(key: string): number;
  /** Milliseconds until the window of this key ends; 0 where there is none. */
  millisecondsLeft(key: string): number;
  add(key: string): void;
  forget(key: string): void;
}

const windowMilliseconds = 60_000;

/**
 * Keys that are counted at once. A key costs a failure, which takes a check of a password, and a
 * window has time for some 3,000 of these: nobody can push a count out before its window ends.
 */
export const countedMax = 32_768;

/** `now`: milliseconds of a clock that only goes forward. */
export function createFailureCounts(now: () => number): FailureCounts {
  // All windows are equally long: the first to begin ends first.
  const windows = new Map<string, { readonly end: number; count: number }>();

  const find = (key: string): { readonly end: number; count: number } | undefined => {
    const found = windows.get(key);
    return found !== undefined && found.end > now() ? found : undefined;
  };

  const makeRoom = (): void => {
    for (const [key, { end }] of windows) {
      if (end > now() && windows.size < countedMax) return;
      windows.delete(key);
    }
  };

  return {
    count: (key) => find(key)?.count ?? 0,
    millisecondsLeft: (key) => Math.max(0, (find(key)?.end ?? 0) - now()),
    add(key) {
      makeRoom();
      const found = windows.get(key);
      if (found === undefined) windows.set(key, { end: now() + windowMilliseconds, count: 1 });
      else found.count += 1;
    },
    forget: (key) => windows.delete(key),
  };
}
