/** Writes that are done once under a key (R40): what all drivers have in common. */

import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** What a write is done once by (R40). Both are digests, so that nothing long is kept. */
export interface Once {
  /** Digest of the account and the client's key. */
  readonly key: string;
  /** Digest of the request. A driver refuses another request under a used key (`toRepeated`). */
  readonly fingerprint: string;
  /** True if the client sent no token: such keys have a bound of their own. */
  readonly isAnonymous?: boolean;
}

/** The first write under a key, as a store keeps it. */
export interface FirstWrite {
  readonly fingerprint: string;
  /** The id of the record that the write made, or empty. */
  readonly id: string;
}

/** In place of the result of a write that was done before, under the same key. */
export interface Repeated {
  /** The id of the record that the write made; without a meaning for a change. */
  readonly id: string;
  readonly isRepeated: true;
}

/** False: nothing was changed, and no key is used up. */
export type Changed = boolean | Repeated;

/** True if the write was done before: this is in place of its result. */
export function isRepeated(result: unknown): result is Repeated {
  return typeof result === 'object' && result !== null && 'isRepeated' in result;
}

/**
 * Does `write` unless it was done before under the key. A result of false or undefined means that
 * nothing was stored: no key is kept then.
 */
export type RunOnce = <T>(once: Once | undefined, write: () => T) => T | Repeated;

/**
 * Does a change of a record unless it was done before under the key: then its record and conditions
 * are not checked. A change that is refused may have found what its first request has done
 * meanwhile: the key is looked for again.
 */
export async function changeUnlessDone<T>(
  once: Once,
  requests: { find(once: Once): MaybePromise<Repeated | undefined> },
  change: () => MaybePromise<T>,
): Promise<T | Repeated> {
  const before = await requests.find(once);
  if (before !== undefined) return before;
  try {
    return await change();
  } catch (error) {
    const repeated = await requests.find(once);
    if (repeated === undefined) throw error;
    return repeated;
  }
}

/** Limit for the keys in a database (R40): beyond it the oldest are removed first. */
export const requestsMax = 1_000_000;
/** Limit for those of clients without a token: they never push out an account's. */
export const anonymousRequestsMax = requestsMax / 10;

/** Throws `idempotency_key_reused` if the request is another one than the first. */
export function toRepeated({ fingerprint, id }: FirstWrite, asked: Once['fingerprint']): Repeated {
  if (fingerprint === asked) return { id, isRepeated: true };
  const message = 'The Idempotency-Key was used for another request.';
  throw new AppError('idempotency_key_reused', message);
}

/** The id that a repetition is told: that of the record that a write returned, or empty. */
export function idOf(result: unknown): string {
  const { id = '' } = Object(result) as { readonly id?: string | number };
  return String(id);
}
