/**
 * Writes under a key, in memory (R40).
 *
 * 1. A write without a key is done as it is.
 * 2. Under a key that is kept, nothing is done: the result is that of the first write, or an error
 *    if the request is another one.
 * 3. Otherwise the write is done. Only if it stored something is its key kept, for 24 hours. All of
 *    this is one call, so that no other write comes between.
 * 4. A write whose key has a place, after a dot, also keeps the key with the dot alone: it tells
 *    which request uses the key, whichever of its writes was done.
 *
 * Example: `run(once, () => add(post))` adds a post and keeps its id; the same call again returns
 * `{id, isRepeated: true}`, and adds nothing.
 */

import { idOf, type Once, type Repeated, type RunOnce, toRepeated } from './once.ts';
import type { Requests } from './store.ts';

/** How long a key is kept (R40). */
const keptMilliseconds = 24 * 60 * 60 * 1000;
/** The memory of a key, in bytes: two digests, an id, an entry of the map. */
const requestBytes = 360;
/** Each key that is kept removes so many old ones at most: more than are added. */
const forgottenAtOnce = 2;

interface Kept {
  readonly fingerprint: string;
  readonly id: string;
  readonly endsAt: number;
}

export interface MemoryRequests extends Requests {
  find(once: Once): Repeated | undefined;
  readonly run: RunOnce;
}

/**
 * `take`: as for the records. `now`: milliseconds since 1970. The oldest go first beyond
 * `requestsMax`.
 */
export function createMemoryRequests(
  take: (bytes: number) => void = () => undefined,
  now = Date.now,
  requestsMax = 100_000,
): MemoryRequests {
  /** Ordered by time. */
  const kept = new Map<string, Kept>();
  const forget = (key: string): void => {
    if (kept.delete(key)) take(-requestBytes);
  };
  const findOne = (key: string, fingerprint: string): Repeated | undefined => {
    const before = kept.get(key);
    if (before === undefined || before.endsAt <= now()) return undefined;
    return toRepeated(before, fingerprint);
  };
  const find = ({ key, fingerprint }: Once): Repeated | undefined => {
    const [whole = ''] = key.split('.');
    findOne(whole, fingerprint);
    findOne(`${whole}.`, fingerprint);
    return findOne(key, fingerprint);
  };
  /** Takes the space of a key; as many are kept as fit. */
  const takeSpace = (): void => {
    try {
      take(requestBytes);
    } catch (error) {
      const [oldest] = kept.keys();
      if (oldest === undefined) throw error;
      forget(oldest);
      take(requestBytes);
    }
  };
  const run: RunOnce = (once, write) => {
    if (once === undefined) return write();
    const repeated = find(once);
    if (repeated !== undefined) return repeated;
    forget(once.key);
    let checked = 0;
    for (const [key, { endsAt }] of kept) {
      if (checked === forgottenAtOnce || (endsAt > now() && kept.size < requestsMax)) break;
      forget(key);
      checked += 1;
    }
    // Before the write, which is refused if there is no space for its key.
    takeSpace();
    let result;
    try {
      result = write();
    } finally {
      if (result === undefined || result === false) take(-requestBytes);
      else {
        const endsAt = now() + keptMilliseconds;
        const { key, fingerprint, id } = once;
        kept.set(key, { fingerprint, id: idOf(result, id), endsAt });
        const [whole, place] = key.split('.');
        if (place) run({ ...once, key: `${whole}.` }, () => true);
      }
    }
    return result;
  };
  return { find, run };
}
