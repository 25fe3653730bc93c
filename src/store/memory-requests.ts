/**
 * Writes under a key, in memory (R40).
 *
 * 1. A write without a key is done as it is.
 * 2. Under a key that is kept, nothing is done: the result is that of the first write, or an error
 *    if the request is another one.
 * 3. Otherwise the write is done. Only if it stored something is its key kept, for 24 hours. All of
 *    this is one call, so that no other write comes between.
 * 4. Keys of clients without a token are kept apart, a tenth of all. Where there is no room, the
 *    oldest key goes: for a client without a token one of these, never an account's.
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
/** Each key that is kept removes so many old ones of its kind at most: more than are added. */
const forgottenAtOnce = 2;

interface Kept {
  readonly fingerprint: string;
  readonly id: string;
  readonly endsAt: number;
}

/** Those of one kind, ordered by time. */
interface Keys {
  readonly kept: Map<string, Kept>;
  readonly max: number;
}

export interface MemoryRequests extends Requests {
  find(once: Once): Repeated | undefined;
  readonly run: RunOnce;
}

/** `take`: as for the records. `now`: milliseconds since 1970. */
export function createMemoryRequests(
  take: (bytes: number) => void = () => undefined,
  now = Date.now,
  requestsMax = 100_000,
): MemoryRequests {
  const ofAccounts: Keys = { kept: new Map(), max: requestsMax };
  const ofOthers: Keys = { kept: new Map(), max: requestsMax / 10 };
  const keysOf = ({ isAnonymous }: Once): Keys => (isAnonymous === true ? ofOthers : ofAccounts);

  const forget = ({ kept }: Keys, key: string): void => {
    if (kept.delete(key)) take(-requestBytes);
  };
  const forgetOld = (keys: Keys): void => {
    let checked = 0;
    for (const [key, { endsAt }] of keys.kept) {
      const isOld = endsAt <= now() || keys.kept.size > keys.max;
      if (checked === forgottenAtOnce || !isOld) break;
      forget(keys, key);
      checked += 1;
    }
  };
  /** Takes the space of a key. Returns the key whose space it gets, where there is no other. */
  const takeSpace = (keys: Keys): readonly [Keys, string] | undefined => {
    try {
      take(requestBytes);
      return undefined;
    } catch (error) {
      const from = [ofOthers, keys].find(({ kept }) => kept.size > 0);
      const [oldest] = from?.kept.keys() ?? [];
      if (from === undefined || oldest === undefined) throw error;
      return [from, oldest];
    }
  };
  const find = (once: Once): Repeated | undefined => {
    const before = keysOf(once).kept.get(once.key);
    if (before === undefined || before.endsAt <= now()) return undefined;
    return toRepeated(before, once.fingerprint);
  };
  const run: RunOnce = (once, write) => {
    if (once === undefined) return write();
    const repeated = find(once);
    if (repeated !== undefined) return repeated;
    const keys = keysOf(once);
    const { key, fingerprint } = once;
    forget(keys, key); // one that is a day old
    // Before the write, which is refused if there is no space for its key.
    const oldest = takeSpace(keys);
    let result;
    try {
      result = write();
    } finally {
      if (result === undefined || result === false) {
        if (oldest === undefined) take(-requestBytes);
      } else {
        if (oldest !== undefined) oldest[0].kept.delete(oldest[1]);
        keys.kept.set(key, { fingerprint, id: idOf(result), endsAt: now() + keptMilliseconds });
        forgetOld(keys);
      }
    }
    return result;
  };
  return { find, run };
}
