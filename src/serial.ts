/**
 * A line for work that must not run at the same time. Work that is urgent overtakes work that is
 * not, but only for a while: its place is that of work that came `delay` milliseconds later.
 * Therefore nothing waits for ever, however much urgent work comes.
 *
 *     now 0    run(a)                    runs at once
 *     now 1    run(b, {delay: 1_000})    waits, due at 1,001
 *     now 2    run(c)                    waits, due at 2: it runs before b
 *     …        what comes before 1,001 runs before b too, and what comes later runs after b
 */

import type { MaybePromise } from './maybe-promise.ts';

interface SerialOptions {
  /** Work that may run at the same time. */
  readonly atOnce?: number;
  /** If more work waits, the last of the line is rejected. */
  readonly waitingMax?: number;
  readonly toRejection?: () => Error;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

interface Place {
  readonly delay?: number;
  /** For whom the work is done. */
  readonly owner?: string;
}

interface Waiting {
  readonly dueAt: number;
  readonly owner: string | undefined;
  readonly start: () => void;
  readonly reject: (error: Error) => void;
}

export type Serial = ReturnType<typeof createSerial>;

export function createSerial({
  atOnce = 1,
  waitingMax = Infinity,
  toRejection = () => new Error('Too much work is waiting.'),
  now = () => performance.now(),
}: SerialOptions = {}) {
  /** In the order of `dueAt`. */
  const line: Waiting[] = [];
  let running = 0;

  const wait = ({ delay = 0, owner }: Place): Promise<void> =>
    new Promise((start, reject) => {
      const dueAt = now() + delay;
      // From the end: only urgent work, which waits a little, has its place elsewhere.
      const place = line.findLastIndex((other) => other.dueAt <= dueAt) + 1;
      line.splice(place, 0, { dueAt, owner, start, reject });
      if (line.length > waitingMax) line.pop()?.reject(toRejection());
    });

  const run = async <T>(work: () => MaybePromise<T>, place: Place = {}): Promise<T> => {
    if (running < atOnce) running += 1;
    else await wait(place);
    try {
      return await work();
    } finally {
      // The next work takes the place over, so that `running` does not change.
      const next = line.shift();
      if (next === undefined) running -= 1;
      else next.start();
    }
  };
  return {
    run,
    /** The number of works of this owner that wait. */
    waitingOf: (owner: string): number => line.filter((other) => other.owner === owner).length,
    get isIdle(): boolean {
      return running === 0;
    },
  };
}
