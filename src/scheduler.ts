/**
 * Shares the event loop between long tasks. Each yields after a few milliseconds, and one waiting
 * task continues in each iteration of the loop, so that other requests run in between.
 */

export interface Scheduler {
  /** Resolves in a later iteration of the loop; one caller in each, first come, first served. */
  yield(): Promise<void>;
}

/** How long a task may run before it yields. */
export const sliceMilliseconds = 5;

export function createScheduler(): Scheduler {
  const waiting: (() => void)[] = [];

  const wake = (): void => {
    const resolve = waiting.shift();
    if (waiting.length > 0) setImmediate(wake);
    resolve?.();
  };

  return {
    yield: () =>
      new Promise((resolve) => {
        if (waiting.push(resolve) === 1) setImmediate(wake);
      }),
  };
}

/** Makes work of many small steps yield when its time in this iteration of the loop is used up. */
export class Pace {
  readonly #scheduler: Scheduler;
  #end = 0;
  #isOpen = false;
  #iteration = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** A number of the iteration of the loop in which the present step runs. */
  get iteration(): number {
    return this.#iteration;
  }

  /** Call it between two steps, and await what it returns; undefined if there is time left. */
  wait(): Promise<void> | undefined {
    const now = performance.now();
    if (this.#isOpen && now >= this.#end) {
      return this.#scheduler.yield().then(() => this.#open(performance.now()));
    }
    if (!this.#isOpen) this.#open(now);
    return undefined;
  }

  #open(now: number): void {
    this.#end = now + sliceMilliseconds;
    this.#isOpen = true;
    this.#iteration += 1;
    setImmediate(() => {
      this.#isOpen = false;
    });
  }
}
