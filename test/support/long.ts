/** `npm run test:long` runs every test at length, those in `*.long.ts` too, and judges time. */

export const isLong = process.env['TEST_LONG'] === '1';

/** How many rounds: of a name in the environment, or by which of the two commands runs. */
export function rounds(
  name: string,
  { short, long }: { readonly short: number; readonly long: number },
): number {
  return Number(process.env[name] ?? (isLong ? long : short));
}
