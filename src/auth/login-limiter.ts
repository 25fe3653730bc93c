/**
 * Counts failed logins per account and per address and refuses more than a few in a minute (R21),
 * in bounded memory.
 */

import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { AppError } from '../errors.ts';

/** Who tries. */
export interface LoginAttempt {
  readonly username: string;
  /** The peer's address as its socket tells it. */
  readonly address: string;
}

/**
 * Whoever fails often enough under a name keeps its owner out too, for the rest of the minute:
 * that is the price of a limit that many addresses together cannot get round.
 */
export interface LoginLimiter {
  /** Throws `too_many_requests` where the account or the address has failed too often. */
  check(attempt: LoginAttempt): void;
  fail(attempt: LoginAttempt): void;
  /** Forgets the failures of the account, not those of the address. */
  succeed(attempt: LoginAttempt): void;
}

export interface LoginLimiterOptions {
  /** Per account in one window; ten times as many per address, which many people may share. */
  readonly failuresMax: number;
  readonly now: () => Date;
}

const windowSeconds = 60;

/**
 * Accounts, and as many addresses, that are counted at once. A window has time for some 3,000
 * checks of a password, so that nobody can push a count out before its window ends.
 */
export const countedMax = 10_000;

export function createLoginLimiter({ failuresMax, now }: LoginLimiterOptions): LoginLimiter {
  const accounts = createFailures(failuresMax);
  const addresses = createFailures(failuresMax * 10);
  return {
    check({ username, address }) {
      const time = now().getTime();
      const untilAccount = accounts.refusedUntil(toAccountKey(username), time);
      const untilAddress = addresses.refusedUntil(toAddressKey(address), time);
      const wait = Math.max(untilAccount, untilAddress) - time;
      if (wait <= 0) return;
      throw new AppError('too_many_requests', 'Too many failed logins. Try again later.', {
        retryAfterSeconds: Math.ceil(wait / 1000),
      });
    },
    fail({ username, address }) {
      const time = now().getTime();
      accounts.add(toAccountKey(username), time);
      addresses.add(toAddressKey(address), time);
    },
    succeed({ username }) {
      accounts.forget(toAccountKey(username));
    },
  };
}

interface Failures {
  /** In milliseconds; 0 where nothing is refused. */
  refusedUntil(key: string, time: number): number;
  add(key: string, time: number): void;
  forget(key: string): void;
}

/** A window begins with the first failure. All are equally long: the first to begin ends first. */
function createFailures(failuresMax: number): Failures {
  const windows = new Map<string, { readonly end: number; count: number }>();

  const makeRoom = (time: number): void => {
    for (const [key, { end }] of windows) {
      if (end > time && windows.size < countedMax) return;
      windows.delete(key);
    }
  };

  return {
    refusedUntil(key, time) {
      const found = windows.get(key);
      return found !== undefined && found.count >= failuresMax && found.end > time ? found.end : 0;
    },
    add(key, time) {
      makeRoom(time);
      const found = windows.get(key);
      if (found === undefined) windows.set(key, { end: time + windowSeconds * 1000, count: 1 });
      else found.count += 1;
    },
    forget(key) {
      windows.delete(key);
    },
  };
}

/** As long for a name of a megabyte as for any other. */
function toAccountKey(username: string): string {
  return createHash('sha256').update(username).digest('base64');
}

/** One subscriber has a whole /64 of IPv6 (RFC 6177 §2), so that its addresses count as one. */
function toAddressKey(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [front = '', back] = address.split('::');
  const groups = front === '' ? [] : front.split(':');
  if (back !== undefined) {
    const rear = back === '' ? [] : back.split(':');
    groups.push(...Array<string>(8 - groups.length - rear.length).fill('0'), ...rear);
  }
  return groups.slice(0, 4).join(':');
}
