/**
 * Executes and delivers the events of all groups one after the other, in time slices, so that only
 * one group's work is in memory and occupies the event loop.
 */

import { Pace, type Scheduler } from '../../scheduler.ts';

export interface EventQueue {
  /** Runs `work` after the work queued before it. Light work takes precedence over heavy work. */
  run(work: () => Promise<void>, isHeavy: boolean): Promise<void>;
  /** Call it between two steps of work, and await what it returns, if anything. */
  wait(): Promise<void> | undefined;
  /** The same number for work that runs in one iteration of the event loop. */
  iteration(): number;
}

export function createEventQueue(scheduler: Scheduler): EventQueue {
  const pace = new Pace(scheduler);
  const light: (() => void)[] = [];
  const heavy: (() => void)[] = [];
  let isBusy = false;

  return {
    wait: () => pace.wait(),
    iteration: () => pace.iteration,
    async run(work, isHeavy) {
      if (isBusy) await new Promise<void>((resolve) => (isHeavy ? heavy : light).push(resolve));
      isBusy = true;
      try {
        await pace.wait();
        await work();
      } finally {
        const next = light.shift() ?? heavy.shift();
        // `isBusy` stays true while the next task starts, so that no other task overtakes it.
        if (next === undefined) isBusy = false;
        else next();
      }
    },
  };
}
