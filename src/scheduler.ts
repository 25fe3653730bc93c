/**
 * Shares the event loop between long tasks: one that waits continues in each turn of the loop, so
 * that other requests are served in between.
 */

/** How long tasks may run in one turn of the loop. */
const turnMilliseconds = 5;

export function createScheduler() {
  const waiting: (() => void)[] = [];
  /** When no further operation may start in this turn; undefined if none has started. */
  let end: number | undefined;
  let isScheduled = false;
  let turns = 0;

  const schedule = (): void => {
    if (!isScheduled) setImmediate(beginTurn);
    isScheduled = true;
  };
  const beginTurn = (): void => {
    isScheduled = false;
    end = undefined;
    const resolve = waiting.shift();
    if (resolve === undefined) return;
    open();
    resolve();
  };
  const open = (): void => {
    end = performance.now() + turnMilliseconds;
    turns += 1;
    schedule();
  };
  const later = (): Promise<void> => {
    schedule();
    return new Promise((resolve) => void waiting.push(resolve));
  };

  return {
    /** The turns in which an operation has started, to tell whether two are in the same one. */
    get turns() {
      return turns;
    },
    /** Resolves in a later iteration of the loop; one caller in each, first come, first served. */
    yield: later,
    /**
     * Call it before an operation. Undefined if operations have used less than `turnMilliseconds`
     * in this turn of the loop, and none waits: the operation may then run at once. Otherwise it
     * resolves in a later turn, first come, first served.
     */
    turn(): Promise<void> | undefined {
      if (waiting.length > 0) return later();
      if (end === undefined) open();
      else if (performance.now() >= end) return later();
      return undefined;
    },
  };
}
