/**
 * Limits failed logins (R21). Those of one account from one address lock that account for that
 * address, and for no other. Many of one account, or of one address, lock nothing: from then on
 * logins under it are let in one at a time, so that nobody can lock out others.
 */

import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { AppError } from '../errors.ts';
import { createFailureCounts } from './failure-counts.ts';
import { createLoginQueue } from './login-queue.ts';

/** Who tries. */
export interface LoginAttempt {
  readonly username: string;
  /** The client's, in canonical text (R34). */
  readonly address: string;
}

export interface LoginLimiter {
  /**
   * Resolves when the password may be checked. Rejects with `too_many_requests` where this account
   * has failed too often from this address, with `overloaded` where too many wait already.
   */
  enter(attempt: LoginAttempt): Promise<void>;
  fail(attempt: LoginAttempt): void;
  /** Forgets the failures of this account from this address, not those of either by itself. */
  succeed(attempt: LoginAttempt): void;
}

export interface LoginLimiterOptions {
  /** Of one account from one address in a minute. */
  readonly failuresMax: number;
  /** Milliseconds of a clock that only goes forward: one that is set back would prolong a lock. */
  readonly now: () => number;
}

/** So many times `failuresMax` an account or an address has failed when its logins are queued. */
const wideFactor = 10;

export function createLoginLimiter({ failuresMax, now }: LoginLimiterOptions): LoginLimiter {
  const pairs = createFailureCounts(now);
  const wides = createFailureCounts(now);
  const queue = createLoginQueue();

  const checkPair = (pair: string): void => {
    if (pairs.count(pair) < failuresMax) return;
    throw new AppError('too_many_requests', 'Too many failed logins. Try again later.', {
      retryAfterSeconds: Math.ceil(pairs.millisecondsLeft(pair) / 1000),
    });
  };

  return {
    async enter(attempt) {
      const { pair, account, network } = toKeys(attempt);
      checkPair(pair);
      // The address first: one that floods waits for itself, and not in the account's queue.
      for (const key of [network, account]) {
        if (wides.count(key) < failuresMax * wideFactor) continue;
        await queue.enter(key, { who: pair, failures: pairs.count(pair) });
        checkPair(pair);
      }
    },
    fail(attempt) {
      const { pair, account, network } = toKeys(attempt);
      pairs.add(pair);
      wides.add(account);
      wides.add(network);
    },
    succeed(attempt) {
      pairs.forget(toKeys(attempt).pair);
    },
  };
}

interface Keys {
  readonly pair: string;
  readonly account: string;
  readonly network: string;
}

/** As short for a name of a megabyte as for any other; no name makes the key of an address. */
function toKeys({ username, address }: LoginAttempt): Keys {
  const account = createHash('sha256').update(username).digest('base64');
  const network = toNetwork(address);
  return { account, network, pair: `${account} ${network}` };
}

/** One subscriber has a whole /64 of IPv6 (RFC 6177 §2), so that its addresses count as one. */
function toNetwork(address: string): string {
  if (!isIPv6(address)) return address;
  const [front = '', back] = address.split('::');
  const groups = front === '' ? [] : front.split(':');
  if (back !== undefined) {
    const rear = back === '' ? [] : back.split(':');
    groups.push(...Array<string>(8 - groups.length - rear.length).fill('0'), ...rear);
  }
  return groups.slice(0, 4).join(':');
}
