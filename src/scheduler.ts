/**
 * Shares the event loop: work that a client can make long runs in turns of one scheduler for all
 * requests, so that requests which need no turn are served in between (R47). The events of
 * subscriptions have a scheduler of their own, because they must not wait behind requests.
 *
 * 1. A turn is one iteration of the event loop, from one `setImmediate` to the next. It has 5 ms.
 *    After an iteration without work, the first `run` begins a turn.
 * 2. `run(work)` calls `work` at once if the turn has time left and nothing waits.
 * 3. Otherwise `work` waits, first come, first served. `setImmediate` begins the next turn, after
 *    the sockets were read.
 * 4. Work is never interrupted: the work that uses up the 5 ms is the last of its turn. A turn
 *    takes 5 ms and the rest of one work at most.
 *
 *     one iteration:  read sockets ──► requests call run() ──► setImmediate: work that waits
 *
 *     iteration 1   sockets: A, B, C, D   A at once (2 ms), B at once (9 ms); C, D wait
 *                   setImmediate          turn 2: C (4 ms), D (4 ms, begun after 4 of 5)
 *     iteration 2   sockets: /hello, E    /hello needs no turn; turn 2 has no time: E waits
 *                   setImmediate          turn 3: E
 *
 * There is no promise of a turn: all that await one would continue before any of them has worked.
 */

import type { MaybePromise } from './maybe-promise.ts';
import { Queue } from './queue.ts';

/** How long work is granted in one turn. */
export const turnMilliseconds = 5;

/** Calls `work` in a turn. Returns what it returns, or a promise of that if it waits. */
export type RunInTurn = <T>(work: () => MaybePromise<T>) => MaybePromise<T>;

export type Scheduler = ReturnType<typeof createScheduler>;

export function createScheduler() {
  const waiting = new Queue<() => void>();
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
          // `resolve(promise)` takes a microtask longer: work that began later would overtake.
          Promise.resolve(work()).then(resolve, reject);
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
