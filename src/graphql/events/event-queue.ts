/**
 * Executes and delivers the events of all groups one after the other, in slices of time, so that
 * the event loop and the memory hold the work of one group only.
 */

import { Pace, type Scheduler } from '../../scheduler.ts';

export interface EventQueue {
  /** Runs `work` after the work before it. Light work goes before heavy work. */
  run(work: () => Promise<void>, isHeavy: boolean): Promise<void>;
  /** To be called between two steps of work: what to await, if anything. */
  wait(): Promise<void> | undefined;
}

export function createEventQueue(scheduler: Scheduler): EventQueue {
  const pace = new Pace(scheduler);
  const light: (() => void)[] = [];
  const heavy: (() => void)[] = [];
  let isBusy = false;

  return {
    wait: () => pace.wait(),
    async run(work, isHeavy) {
      if (isBusy) await new Promise<void>((resolve) => (isHeavy ? heavy : light).push(resolve));
      isBusy = true;
      try {
        await pace.wait();
        await work();
      } finally {
        const next = light.shift() ?? heavy.shift();
        // The queue stays busy while the next task starts, so that no other one overtakes it.
        if (next === undefined) isBusy = false;
        else next();
      }
    },
  };
}
