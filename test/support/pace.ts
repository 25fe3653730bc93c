/** That work is soon done: judged by `npm run test:long` alone, since processors have other work. */

import assert from 'node:assert/strict';
import { isLong } from './long.ts';

/** At length, fails where something took more milliseconds than that. */
export function assertWithin(milliseconds: number, taken: number): void {
  if (isLong) assert.ok(taken < milliseconds, `${taken.toFixed()} ms, more than ${milliseconds}`);
}

/** Does the work; at length, fails where it took more milliseconds of this processor than that. */
export async function assertSoon(milliseconds: number, work: () => unknown): Promise<void> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  const taken = (user + system) / 1_000;
  assertWithin(milliseconds, taken);
}

/** Settings of tests: a loaded machine may take long to send the next request of a connection. */
export const patient = { KEEP_ALIVE_SECONDS: '60' };
