import { setTimeout as pause } from 'node:timers/promises';

/**
 * Looks again and again until it is so. Between two looks it leaves the processors to those that
 * are waited for; the time limit of the test run is the only one.
 */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await pause(10);
}
