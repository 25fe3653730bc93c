/** Writes that are done once under a key (R40): what all drivers have in common. */

import { AppError } from '../errors.ts';

/** A write that is done once under its key (R40). Digests, so that nothing long is kept. */
export interface Once {
  /** Of the account, the client's key and, in GraphQL, the place of the write in its request. */
  readonly key: string;
  /** Of the request. A driver refuses another one under a used key (`idempotency_key_reused`). */
  readonly print: string;
}

/** In place of the result of a write that was done before, under the same key. */
export interface Repeated {
  /** Of the record that the write made; without a meaning for a change. */
  readonly id: string;
  readonly isRepeated: true;
}

/** Whether this is in place of the result of a write. */
export function isRepeated(result: unknown): result is Repeated {
  return typeof result === 'object' && result !== null && 'isRepeated' in result;
}

/**
 * Does `write` unless it was done before under the key. A result of false or undefined means that
 * nothing was stored: no key is kept then.
 */
export type RunOnce = <T>(once: Once | undefined, write: () => T) => T | Repeated;

/** Keys of writes in a database (R40): the oldest go first beyond this number. */
export const requestsMax = 1_000_000;

/** Throws if the request that is repeated is another one than the first. */
export function toRepeated(
  { print, id }: { readonly print: string; readonly id: string },
  asked: string,
): Repeated {
  if (print === asked) return { id, isRepeated: true };
  const message = 'The Idempotency-Key was used for another request.';
  throw new AppError('idempotency_key_reused', message);
}

/** The id of the record that a write returned, or an empty text. */
export function idOf(result: unknown): string {
  const { id = '' } = Object(result) as { readonly id?: string | number };
  return String(id);
}
