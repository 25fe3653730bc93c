/**
 * Logins (Spec §5 rule 1, R21): name and password in, access token out, and the limits of failed
 * ones. Too many failures of one account from one address lock that account for that address only.
 * Many failures of one account, or from one address, lock nothing: further logins of it are then
 * admitted one at a time, so that no client can lock out others. Each process counts for itself.
 */

import { hash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { BoundedMap } from '../bounded-map.ts';
import { AppError, overloaded } from '../errors.ts';
import { createSerial, type Serial } from '../serial.ts';
import type { Store } from '../store/store.ts';
import type { LogSecurity } from '../watch/service-metrics.ts';
import type { Tokens } from './jwt.ts';
import type { CheckPassword } from './password.ts';
import { type Standing, toPlace } from './standing.ts';

/** One attempt to log in. */
interface LoginAttempt {
  readonly username: string;
  /** The client's address in canonical form (R34). */
  readonly address: string;
}

export type Login = ReturnType<typeof createLogin>;

interface LoginDeps {
  readonly accounts: Pick<Store['accounts'], 'findForLogin'>;
  readonly limiter: ReturnType<typeof createLoginLimiter>;
  readonly checkPassword: CheckPassword;
  readonly tokens: Tokens;
  readonly security: LogSecurity;
}

export function createLogin(deps: LoginDeps) {
  const { accounts, limiter, checkPassword, tokens, security } = deps;
  /**
   * Resolves with a token if the password is right. An unknown user and a wrong password are
   * refused alike, with `invalid_credentials` after the same work. Rejects with `too_many_requests`
   * after too many failures, and with `overloaded` if too many logins are checked or wait.
   */
  return async (credentials: LoginAttempt & { readonly password: string }): Promise<string> => {
    const { failures, standing } = await limiter.enter(credentials);
    const account = await accounts.findForLogin(credentials.username);
    // Logins that are checked at the same time can all fail, so that the count can exceed its limit
    // by that number.
    const isRight = await checkPassword(credentials.password, account?.passwordHash, standing);
    if (account === undefined || !isRight) {
      limiter.fail(credentials);
      // An unknown name is not logged: it may be a password typed into the wrong field.
      security('login failed', { client: credentials.address, account: account?.username });
      throw new AppError('invalid_credentials', 'The username or the password is wrong.');
    }
    if (failures > 0) limiter.succeed(credentials);
    return tokens.sign(account);
  };
}

/** Logins of an account or an address are queued after this many times `failuresMax` failures. */
const wideFactor = 10;

/**
 * `failuresMax`: failures of one account from one address that are allowed in a minute. `now`:
 * milliseconds of a monotonic clock, because setting the system time back must not prolong a lock.
 */
export function createLoginLimiter(failuresMax: number, now: () => number) {
  const counts = createFailureCounts(now);
  const waitInQueue = createLoginQueue();

  /** Returns the failures of the pair of account and address. Throws if it has too many. */
  const check = (pair: string): number => {
    const { count, millisecondsLeft } = counts.find(pair);
    if (count < failuresMax) return count;
    throw new AppError('too_many_requests', 'Too many failed logins. Try again later.', {
      retryAfterSeconds: Math.ceil(millisecondsLeft / 1000),
    });
  };

  return {
    /**
     * Resolves with the failures of this account from this address, and the standing of the
     * address, when the password may be checked. Rejects with `too_many_requests` if there were
     * too many failures, and with `overloaded` if too many logins wait.
     */
    async enter(attempt: LoginAttempt) {
      const { pair, network, account } = toKeys(attempt);
      // The address comes first, so that a flood from it does not fill the account's queue.
      for (const key of [network, account]) {
        const failures = check(pair);
        const isQueued = counts.find(key).count >= failuresMax * wideFactor;
        if (isQueued) await waitInQueue(key, { client: pair, failures });
      }
      const standing: Standing = { client: network, failures: counts.find(network).count };
      return { failures: check(pair), standing };
    },
    fail(attempt: LoginAttempt): void {
      for (const key of Object.values(toKeys(attempt))) counts.add(key);
    },
    /** Forgets the failures of this pair of account and address, not those of either alone. */
    succeed(attempt: LoginAttempt): void {
      counts.forget(toKeys(attempt).pair);
    },
  };
}

const windowMilliseconds = 60_000;

/**
 * Keys counted at the same time. A failure adds three keys and needs a password check, and a minute
 * has time for about 3,000 checks: no client can push out a count before its window ends.
 */
export const countedMax = 32_768;

/** Counts failures by key, each for one minute from its first failure, in bounded memory. */
export function createFailureCounts(now: () => number) {
  // Every window has the same length, so the oldest entry ends first.
  const windows = new BoundedMap<{ readonly end: number; count: number }>(countedMax);
  return {
    /** Returns the failures of this key, and how long they still count. */
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

/** The interval between two logins of one key. */
const intervalMilliseconds = 500;

/** Logins that may wait for one key: the last of them waits 20 seconds. */
export const waitingMax = 40;

/** Admits the logins of one key one at a time, at an interval. */
function createLoginQueue(): (key: string, standing: Standing) => Promise<void> {
  // A line is removed when an interval ends without a waiting login.
  const lines = new Map<string, Serial>();
  const seconds = Math.ceil((intervalMilliseconds * waitingMax) / 1000);
  const toRejection = () => overloaded('Too many logins are waiting. Try again later.', seconds);

  return (key, standing) =>
    new Promise((admit, refuse) => {
      const line = lines.get(key) ?? createSerial({ waitingMax, toRejection });
      lines.set(key, line);
      const interval = (): Promise<void> => {
        admit();
        return new Promise((end) => setTimeout(end, intervalMilliseconds).unref());
      };
      const forget = (): void => void (line.isIdle && lines.delete(key));
      line.run(interval, toPlace(line, standing)).catch(refuse).finally(forget);
    });
}

/** Account keys are hashes: their length is fixed, and none can equal an address. */
function toKeys({ username, address }: LoginAttempt) {
  const account = hash('sha256', username, 'base64');
  const network = toNetwork(address);
  return { account, network, pair: `${account} ${network}` };
}

/** A subscriber usually has a whole /64 of IPv6 (RFC 6177 §2), so it counts as one address. */
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
