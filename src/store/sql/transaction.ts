/**
 * A transaction that is written once, for both drivers: a generator, which yields statements and
 * gets their rows. SQLite runs all of it in one call, PostgreSQL waits for each statement. What it
 * throws undoes all; on SQLite it may throw only before it has changed anything.
 *
 *     const [row] = yield ['', 'SELECT value FROM counters WHERE name = $1', [name]];
 *     const next = yield* inTurn(() => change(row));
 */

import type { Row, Value } from './rows.ts';

/** `askedAt`: as in `ChangeOptions`. */
export type Write = readonly [
  table: string,
  text: string,
  values: readonly Value[],
  askedAt?: number | undefined,
];

/** A statement, or work for a turn of the scheduler (R47). */
export type Step = Write | (() => void);
export type Transaction<T> = Generator<Step, T, readonly Row[]>;

/** Does what may take long in a turn, and returns its value. */
export function* inTurn<T>(work: () => T): Transaction<T> {
  const done: T[] = [];
  yield () => void done.push(work());
  return done[0] as T; // the driver has called it
}
