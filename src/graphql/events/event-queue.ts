/**
 * The order in which the events of all groups are made and handed out: one after the other, in
 * slices of time, so that neither the loop nor the memory has those of many groups at once.
 */

import { Pace, type Turns } from '../turns.ts';

export interface EventQueue {
  /** Runs `work` once those before it are through. Light work goes before heavy work. */
  run(work: () => Promise<void>, isHeavy: boolean): Promise<void>;
  /** To be asked for between two steps of work: what to await, if anything. */
  wait(): Promise<void> | undefined;
}

export function createEventQueue(turns: Turns): EventQueue {
  const pace = new Pace(turns);
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
        // Whoever is next stands for the queue from here on: nobody may come in between.
        if (next === undefined) isBusy = false;
        else next();
      }
    },
  };
}
