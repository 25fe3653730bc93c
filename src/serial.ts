/** Runs asynchronous work one after the other: a mutex, first come, first served. */

export type RunSerially = <T>(work: () => Promise<T>) => Promise<T>;

/** The returned function calls `work` when all work before it has settled, failed or not. */
export function createSerial(): RunSerially {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
}
