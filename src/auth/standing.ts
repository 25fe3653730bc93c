/** The place of a login in a line: the client with the fewest failures goes first (R21). */

import type { Serial } from '../serial.ts';

/** The client that a login waits for, with its failures. */
export interface Standing {
  readonly client: string;
  readonly failures: number;
}

/** How long others may overtake a login, for each failure of its client. */
const millisecondsPerFailure = 1_000;
/** Limit for the failures that count: a login that waits is checked in the end, in any case. */
const failuresMax = 20;

export function toPlace({ waitingOf }: Pick<Serial, 'waitingOf'>, standing: Standing) {
  const { client, failures } = standing;
  // Logins of the same client that already wait count like failures.
  const counted = Math.min(failuresMax, failures + waitingOf(client));
  return { owner: client, delay: counted * millisecondsPerFailure };
}
