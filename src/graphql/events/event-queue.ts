/**
 * Executes and delivers the events of all groups one after the other, so that only one event is
 * being made, and yields between two of them when this iteration of the event loop has had its
 * time.
 */

import type { Scheduler } from '../../scheduler.ts';

export class EventQueue {
  readonly #scheduler: Scheduler;
  readonly #light: (() => void)[] = [];
  readonly #heavy: (() => void)[] = [];
  #isBusy = false;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** The same number for work that runs in one iteration of the event loop. */
  get turn(): number {
    return this.#scheduler.turns;
  }

  /** Call it between two steps of work, and await what it returns, if anything. */
  wait(): Promise<void> | undefined {
    return this.#scheduler.turn();
  }

  /** Runs `work` after the work queued before it. Light work takes precedence over heavy work. */
  async run(work: () => Promise<void>, isHeavy: boolean): Promise<void> {
    const queue = isHeavy ? this.#heavy : this.#light;
    if (this.#isBusy) await new Promise<void>((resolve) => void queue.push(resolve));
    this.#isBusy = true;
    try {
      await this.wait();
      await work();
    } finally {
      const next = this.#light.shift() ?? this.#heavy.shift();
      // It stays busy while the next work starts, so that no other overtakes it.
      if (next === undefined) this.#isBusy = false;
      else next();
    }
  }
}
