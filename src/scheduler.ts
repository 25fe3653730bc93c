/**
 * Shares the event loop: work that a client can make long runs in turns of one scheduler for all
 * requests, so that those which need nothing are served in between (R47). The events of
 * subscriptions have one of their own, because they must not wait behind what others ask for.
 *
 * 1. `run(work)` calls `work` at once if the present turn has time and nothing waits.
 * 2. Otherwise `work` waits, first come, first served, and is called in a later turn.
 * 3. A turn is one iteration of the event loop. It grants work until `turnMilliseconds` are used:
 *    the work that crosses this limit is the last, so a turn takes that long and one work longer.
 *
 *     iteration 1: A (2 ms), B (9 ms)   C and D came too: they wait
 *     iteration 2: sockets are read     C (4 ms), D (4 ms)
 *
 * There is no promise of a turn: all that await one would continue before any of them has worked.
 */

import type { MaybePromise } from './maybe-promise.ts';

/** How long work is granted in one turn. */
export const turnMilliseconds = 5;

/** Calls `work` in a turn. Returns what it returns, or a promise of that if it waits. */
export type RunInTurn = <T>(work: () => MaybePromise<T>) => MaybePromise<T>;

export type Scheduler = ReturnType<typeof createScheduler>;

export function createScheduler() {
  const waiting: (() => void)[] = [];
  /** When the present turn has no more time; undefined before its first work. */
  let end: number | undefined;
  let turns = 0;

  const begin = (): number => {
    turns += 1;
    setImmediate(next);
    return (end = performance.now() + turnMilliseconds);
  };
  const next = (): void => {
    end = undefined;
    if (waiting.length === 0) return;
    const until = begin();
    do waiting.shift()?.();
    while (waiting.length > 0 && performance.now() < until);
  };
  const run: RunInTurn = <T>(work: () => MaybePromise<T>): MaybePromise<T> => {
    const isFree = waiting.length === 0 && performance.now() < (end ?? begin());
    if (isFree) return work();
    return new Promise<T>((resolve, reject) => {
      waiting.push(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
    });
  };
  return {
    run,
    /** The number of turns so far, to tell whether two works are in the same one. */
    get turns() {
      return turns;
    },
  };
}
