import { setTimeout as pause } from 'node:timers/promises';

/**
 * Looks again and again until it is so, and fails after `seconds` with `what` it has waited for.
 * Between two looks it leaves the processors to those that are waited for.
 */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  seconds = 20,
): Promise<void> {
  const end = performance.now() + seconds * 1_000;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`Not within ${seconds} s: ${what}`);
    await pause(10);
  }
}

/** Gives what was waited for, and fails after `seconds` with `what` that was. */
export async function within<T>(waited: Promise<T>, what: string, seconds = 20): Promise<T> {
  const late = new AbortController();
  const { signal } = late;
  const end = pause(seconds * 1_000, undefined, { signal }).then(() => {
    throw new Error(`Not within ${seconds} s: ${what}`);
  });
  return Promise.race([waited, end]).finally(() => late.abort());
}
