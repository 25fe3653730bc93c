/**
 * Writes under a key, in memory (R40).
 *
 * 1. A write without a key is done as it is.
 * 2. Under a key that is kept, nothing is done: the result is that of the first, or an error if the
 *    request is another one.
 * 3. Otherwise the write is done. Only if it stored something is the key kept, for 24 hours. All of
 *    this is one call, so that no other write comes between.
 *
 * Example: `run(once, () => add(post))` adds a post and keeps its id; the same call again returns
 * `{id, isRepeated: true}`, and adds nothing.
 */

import { AppError } from '../errors.ts';
import type { Once, Repeated, Requests } from './store.ts';

/** How long a key is kept (R40). */
export const keptMilliseconds = 24 * 60 * 60 * 1000;
/** The oldest go first beyond this number. */
const requestsMax = 100_000;
/** The memory of one, in bytes: two digests, an id, an entry of the map. */
const requestBytes = 300;

interface Kept {
  readonly print: string;
  readonly id: string;
  readonly endsAt: number;
}

export interface MemoryRequests extends Requests {
  find(once: Once): Repeated | undefined;
  /** Does `write` unless it was done before. A result of false or undefined has stored nothing. */
  run<T>(once: Once | undefined, write: () => T): T | Repeated;
}

/** `take`: as for the records. `now`: milliseconds since 1970. */
export function createMemoryRequests(
  take: (bytes: number) => void,
  now: () => number,
): MemoryRequests {
  /** Ordered by time. */
  const kept = new Map<string, Kept>();
  const forget = (key: string): void => {
    if (kept.delete(key)) take(-requestBytes);
  };
  const find = ({ key, print }: Once): Repeated | undefined => {
    const before = kept.get(key);
    if (before === undefined || before.endsAt <= now()) return undefined;
    return toRepeated(before, print);
  };
  return {
    find,
    run(once, write) {
      if (once === undefined) return write();
      const repeated = find(once);
      if (repeated !== undefined) return repeated;
      forget(once.key);
      for (const [key, { endsAt }] of kept) {
        if (endsAt > now() && kept.size < requestsMax) break;
        forget(key);
      }
      // Before the write, which is refused if there is no space for its key.
      take(requestBytes);
      let result;
      try {
        result = write();
      } finally {
        if (result === undefined || result === false) take(-requestBytes);
        else
          kept.set(once.key, {
            print: once.print,
            id: idOf(result),
            endsAt: now() + keptMilliseconds,
          });
      }
      return result;
    },
  };
}

/** Throws if the request that is repeated is another one than the first. */
export function toRepeated({ print, id }: Pick<Kept, 'print' | 'id'>, asked: string): Repeated {
  if (print === asked) return { id, isRepeated: true };
  const message = 'The Idempotency-Key was used for another request.';
  throw new AppError('idempotency_key_reused', message);
}

function idOf(result: unknown): string {
  const { id = '' } = Object(result) as { readonly id?: string | number };
  return String(id);
}
