/**
 * Executes and delivers the events of all groups one after the other, so that only one event is
 * being made, and yields between two of them when this iteration of the event loop has had its
 * time.
 */

import type { MemoryPool } from '../../memory-pool.ts';
import type { Scheduler } from '../../scheduler.ts';

/** How often heavy work that waits for memory asks for it … */
const retryMilliseconds = 50;
/** … and how often at most: in ten seconds those who do not read are disconnected. */
const retriesMax = 200;

export class EventQueue {
  readonly #scheduler: Scheduler;
  readonly #pool: Pick<MemoryPool, 'isOver'>;
  readonly #light: (() => void)[] = [];
  readonly #heavy: (() => void)[] = [];
  #isBusy = false;
  #isRetryDue = false;
  #retries = 0;

  constructor(scheduler: Scheduler, pool: Pick<MemoryPool, 'isOver'>) {
    this.#scheduler = scheduler;
    this.#pool = pool;
  }

  /** The same number for work that runs in one iteration of the event loop. */
  get turn(): number {
    return this.#scheduler.turns;
  }

  /** Call it between two steps of work, and await what it returns, if anything. */
  wait(): Promise<void> | undefined {
    return this.#scheduler.turn();
  }

  /** False while clients have not taken more than may be in memory: heavy work then waits. */
  get hasRoom(): boolean {
    return !this.#pool.isOver;
  }

  /** Runs `work` after the work queued before it. Light work takes precedence over heavy work. */
  async run<T>(work: () => Promise<T>, isHeavy: boolean): Promise<T> {
    const queue = isHeavy ? this.#heavy : this.#light;
    if (this.#isBusy || (isHeavy && !this.hasRoom)) {
      const start = new Promise<void>((resolve) => void queue.push(resolve));
      if (!this.#isBusy) this.#startNext();
      await start;
    }
    this.#isBusy = true;
    try {
      await this.wait();
      return await work();
    } finally {
      this.#startNext();
    }
  }

  #startNext(): void {
    const mayBeHeavy = this.hasRoom || this.#retries >= retriesMax;
    const next = this.#light.shift() ?? (mayBeHeavy ? this.#heavy.shift() : undefined);
    // It stays busy while the next work starts, so that no other overtakes it.
    this.#isBusy = next !== undefined;
    if (mayBeHeavy) this.#retries = 0;
    next?.();
    if (this.#isBusy || this.#heavy.length === 0 || this.#isRetryDue) return;
    this.#isRetryDue = true;
    setTimeout(() => {
      this.#isRetryDue = false;
      this.#retries += 1;
      if (!this.#isBusy) this.#startNext();
    }, retryMilliseconds).unref();
  }
}
