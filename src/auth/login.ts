/**
 * Logins (Spec §5 rule 1, R21): name and password in, access token out; changes of a password; and
 * the limits of failed ones. Too many failures of one account from one address lock that account
 * for that address only. Many failures of one account, or from one address, lock nothing: further
 * logins of it are then admitted one at a time, so that no client can lock out others. Each process
 * counts for itself.
 */

import { hash } from 'node:crypto';
import { AppError, overloaded } from '../errors.ts';
import { createSerial, type Serial } from '../serial.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Account } from '../store/model.ts';
import type { Store, StoredAccounts } from '../store/store.ts';
import type { LogSecurity } from '../watch/service-metrics.ts';
import { createCounts, toNetwork } from './client-counts.ts';
import type { Tokens } from './jwt.ts';
import type { CheckPassword } from './password.ts';
import { type Standing, toPlace } from './standing.ts';

/** One attempt to log in. */
interface LoginAttempt {
  readonly username: string;
  /** The client's address in canonical form (R34). */
  readonly address: string;
}

interface Credentials extends LoginAttempt {
  readonly password: string;
  readonly requestId: string;
}

export type Login = ReturnType<typeof createLogin>;
export type ChangePassword = ReturnType<typeof createChangePassword>;

interface CheckDeps {
  readonly limiter: ReturnType<typeof createLoginLimiter>;
  readonly checkPassword: CheckPassword;
  readonly security: LogSecurity;
}

interface LoginDeps extends CheckDeps {
  readonly accounts: Pick<Store['accounts'], 'findForLogin'>;
  readonly tokens: Tokens;
}

export function createLogin(deps: LoginDeps) {
  const { accounts, tokens } = deps;
  const check = createCheck(deps, 'POST /auth/login');
  /**
   * Resolves with a token if the password is right. An unknown user and a wrong password are
   * refused alike, with `invalid_credentials` after the same work. Rejects with `too_many_requests`
   * after too many failures, and with `overloaded` if too many logins are checked or wait.
   */
  return async (credentials: Credentials): Promise<string> =>
    tokens.sign(await check(credentials, () => accounts.findForLogin(credentials.username)));
}

/** Returns a function that checks a password, within the limits of failed logins. */
function createCheck({ limiter, checkPassword, security }: CheckDeps, action: string) {
  return async (
    credentials: Credentials,
    find: () => MaybePromise<Account | undefined>,
  ): Promise<Account> => {
    const { failures, standing } = await limiter.enter(credentials);
    const account = await find();
    // Logins that are checked at the same time can all fail, so that the count can exceed its limit
    // by that number.
    const isRight = await checkPassword(credentials.password, account?.passwordHash, standing);
    if (account === undefined || !isRight) {
      limiter.fail(credentials);
      // An unknown name is not logged: it may be a password typed into the wrong field.
      const { address: client, requestId } = credentials;
      security('login failed', { account: account?.username, client, action, requestId });
      throw new AppError('invalid_credentials', 'The username or the password is wrong.');
    }
    if (failures > 0) limiter.succeed(credentials);
    return account;
  };
}

interface ChangeDeps extends CheckDeps {
  /** The accounts that the store keeps; undefined if it keeps none. */
  readonly stored: Pick<StoredAccounts, 'changePassword'> | undefined;
  /** The names of the accounts of USERS_FILE, or of the demo. */
  readonly configured: ReadonlySet<string>;
  /** Hashes a password; waits as checks do. */
  readonly toHash: (password: string, standing: Standing) => Promise<string>;
}

/** Changes the password of an account, which ends all its tokens (R42, R51). */
export function createChangePassword(deps: ChangeDeps) {
  const { stored, configured, toHash } = deps;
  const check = createCheck(deps, 'POST /auth/password');
  /**
   * `account`: that of the token. Rejects as a login does and, with `forbidden`, for an account
   * that is not in the store.
   */
  return async (
    account: Account,
    { newPassword, ...given }: Omit<Credentials, 'username'> & { readonly newPassword: string },
  ): Promise<void> => {
    const { username, passwordHash } = account;
    await check({ username, ...given }, () => account);
    if (stored === undefined || configured.has(username)) throw notStored();
    const next = await toHash(newPassword, { client: toNetwork(given.address), failures: 0 });
    if (await stored.changePassword(username, next, passwordHash)) return;
    throw new AppError('invalid_token', 'The account has another password by now, or was removed.');
  };
}

function notStored(): AppError {
  const place = 'set where the service is configured (USERS_FILE)';
  return new AppError('forbidden', `The password of this account is ${place}: ask who runs it.`);
}

/** Logins of an account or an address are queued after this many times `failuresMax` failures. */
const wideFactor = 10;

/**
 * `failuresMax`: failures of one account from one address that are allowed in a minute. `now`:
 * milliseconds of a monotonic clock, because setting the system time back must not prolong a lock.
 */
export function createLoginLimiter(failuresMax: number, now: () => number) {
  const counts = createCounts(now);
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
