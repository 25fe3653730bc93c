/** Counts by client, each for one minute, in bounded memory: of logins that fail, of comments. */

import { isIPv6 } from 'node:net';
import { BoundedMap } from '../bounded-map.ts';

const windowMilliseconds = 60_000;

/**
 * Keys counted at the same time. A failed login adds three keys and needs a password check, and a
 * minute has time for about 3,000 checks: no client can push out such a count before its window
 * ends.
 */
export const countedMax = 32_768;

/** Counts by key, each for one minute from its first. `now`: milliseconds of a monotonic clock. */
export function createCounts(now: () => number) {
  // Every window has the same length, so the oldest entry ends first.
  const windows = new BoundedMap<{ readonly end: number; count: number }>(countedMax);
  return {
    /** Returns the count of this key, and how long it still holds. */
    find(key: string) {
      const { end, count } = windows.get(key) ?? { end: 0, count: 0 };
      const millisecondsLeft = Math.max(0, end - now());
      return { count: millisecondsLeft > 0 ? count : 0, millisecondsLeft };
    },
    add(key: string): void {
      const found = windows.get(key);
      if (found !== undefined && found.end > now()) found.count += 1;
      else windows.set(key, { end: now() + windowMilliseconds, count: 1 });
    },
    forget: (key: string): void => windows.delete(key),
  };
}

/** A subscriber usually has a whole /64 of IPv6 (RFC 6177 §2), so it counts as one address. */
export function toNetwork(address: string): string {
  if (!isIPv6(address)) return address;
  const [front = '', back] = address.split('::');
  const groups = front === '' ? [] : front.split(':');
  if (back !== undefined) {
    const rear = back === '' ? [] : back.split(':');
    groups.push(...Array<string>(8 - groups.length - rear.length).fill('0'), ...rear);
  }
  return groups.slice(0, 4).join(':');
}
