/** `npm run test:long` runs every test at length, those in `*.long.ts` too, and judges time. */

import { test, type TestContext } from 'node:test';

export const isLong = process.env['TEST_LONG'] === '1';

/** A test that needs real seconds, in which nothing may stand still: only at length. */
export function testAtLength(name: string, run: (t: TestContext) => Promise<void>): void {
  if (isLong) test(name, run);
}

/** How many cases a property is tried with: so many at length, an eighth of them else. */
export function cases(long: number): number {
  return isLong ? long : Math.ceil(long / 8);
}

/** How many rounds: of a name in the environment, or by which of the two commands runs. */
export function rounds(
  name: string,
  { short, long }: { readonly short: number; readonly long: number },
): number {
  return Number(process.env[name] ?? (isLong ? long : short));
}
