/**
 * Shares the event loop between long tasks: those that wait continue in later turns of the loop, so
 * that other requests are served in between.
 */

/** How long tasks may run in one turn of the loop. */
const turnMilliseconds = 5;

export function createScheduler() {
  const waiting: { readonly resolve: () => void; readonly hasYielded: boolean }[] = [];
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
    if (waiting.length > 0) resume(open());
  };
  /** One who yielded, or those who wait to start an operation until the time of a turn is used. */
  const resume = (until: number): void => {
    const next = waiting.shift();
    next?.resolve();
    if (next?.hasYielded !== false) return;
    // A microtask comes after what the operation does at once.
    queueMicrotask(() => {
      if (waiting[0]?.hasYielded === false && performance.now() < until) resume(until);
    });
  };
  const open = (): number => {
    end = performance.now() + turnMilliseconds;
    turns += 1;
    schedule();
    return end;
  };
  const later = (hasYielded: boolean): Promise<void> => {
    schedule();
    return new Promise((resolve) => void waiting.push({ resolve, hasYielded }));
  };

  return {
    /** The turns in which an operation has started, to tell whether two are in the same one. */
    get turns() {
      return turns;
    },
    /** Resolves in a later iteration of the loop; one caller in each, first come, first served. */
    yield: () => later(true),
    /**
     * Call it before an operation. Undefined if operations have used less than `turnMilliseconds`
     * in this turn of the loop, and none waits: the operation may then run at once. Otherwise it
     * resolves in a later turn, first come, first served.
     */
    turn(): Promise<void> | undefined {
      if (waiting.length > 0) return later(false);
      if (end === undefined) open();
      else if (performance.now() >= end) return later(false);
      return undefined;
    },
  };
}
