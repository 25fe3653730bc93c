/**
 * Limits failed logins (R21). Those of one account from one address lock that account for that
 * address, and for no other. Many of one account, or of one address, lock nothing: from then on
 * logins under it are let in one at a time, so that no client can lock out others.
 */

import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { AppError } from '../errors.ts';

/** One attempt to log in. */
export interface LoginAttempt {
  readonly username: string;
  /** The client's, in canonical text (R34). */
  readonly address: string;
}

export interface LoginLimiterOptions {
  /** Of one account from one address in a minute. */
  readonly failuresMax: number;
  /** Milliseconds of a clock that only goes forward: one that is set back would prolong a lock. */
  readonly now: () => number;
}

/** Logins of an account or an address are queued after this many times `failuresMax` failures. */
const wideFactor = 10;

export type LoginLimiter = ReturnType<typeof createLoginLimiter>;

export function createLoginLimiter({ failuresMax, now }: LoginLimiterOptions) {
  const pairs = new FailureCounts(now);
  const wides = new FailureCounts(now);
  const waitInQueue = createLoginQueue();

  const checkPair = (pair: string): void => {
    const { count, millisecondsLeft } = pairs.find(pair);
    if (count < failuresMax) return;
    throw new AppError('too_many_requests', 'Too many failed logins. Try again later.', {
      retryAfterSeconds: Math.ceil(millisecondsLeft / 1000),
    });
  };

  return {
    /**
     * Resolves when the password may be checked. Rejects with `too_many_requests` where this
     * account has failed too often from this address, with `overloaded` where too many wait.
     */
    async enter(attempt: LoginAttempt): Promise<void> {
      const { pair, account, network } = toKeys(attempt);
      checkPair(pair);
      // The address first: one that floods waits for itself, and not in the account's queue.
      for (const key of [network, account]) {
        if (wides.find(key).count < failuresMax * wideFactor) continue;
        await waitInQueue(key, pair, pairs.find(pair).count);
        checkPair(pair);
      }
    },
    fail(attempt: LoginAttempt): void {
      const { pair, account, network } = toKeys(attempt);
      pairs.add(pair);
      wides.add(account);
      wides.add(network);
    },
    /** Forgets the failures of this account from this address, not those of either by itself. */
    succeed(attempt: LoginAttempt): void {
      pairs.forget(toKeys(attempt).pair);
    },
  };
}

const windowMilliseconds = 60_000;

/**
 * Keys that are counted at once. A key costs a failure, which takes a check of a password, and a
 * window has time for some 3,000 of these: no client can push a count out before its window ends.
 */
export const countedMax = 32_768;

/** Counts failures by key, each for a minute from its first one, in bounded memory. */
export class FailureCounts {
  readonly #now: () => number;
  // All windows are equally long: the first to begin ends first.
  readonly #windows = new Map<string, { readonly end: number; count: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The failures of this key, and the time until they no longer count. */
  find(key: string): { readonly count: number; readonly millisecondsLeft: number } {
    const { end, count } = this.#windows.get(key) ?? { end: 0, count: 0 };
    const millisecondsLeft = Math.max(0, end - this.#now());
    return { count: millisecondsLeft > 0 ? count : 0, millisecondsLeft };
  }

  add(key: string): void {
    this.#makeRoom();
    const found = this.#windows.get(key);
    if (found !== undefined) found.count += 1;
    else this.#windows.set(key, { end: this.#now() + windowMilliseconds, count: 1 });
  }

  forget(key: string): void {
    this.#windows.delete(key);
  }

  #makeRoom(): void {
    for (const [key, { end }] of this.#windows) {
      if (end > this.#now() && this.#windows.size < countedMax) return;
      this.#windows.delete(key);
    }
  }
}

/** Between two logins under one key. */
const intervalMilliseconds = 500;

/** Under one key: the last of them waits 20 seconds. */
export const waitingMax = 40;

interface Waiting {
  readonly client: string;
  readonly rank: number;
  readonly letIn: () => void;
  readonly refuse: (error: AppError) => void;
}

/**
 * Lets in logins under one key one at a time, at intervals; the client with the fewest failures
 * goes first. Resolves at once where no other login was within the interval. Rejects with
 * `overloaded` where too many wait and this one is, or comes to be, the last of them.
 */
function createLoginQueue(): (key: string, client: string, failures: number) => Promise<void> {
  // A key stays until an interval ends in which no login has waited.
  const queues = new Map<string, Waiting[]>();

  const open = (key: string): void => {
    const queue: Waiting[] = [];
    queues.set(key, queue);
    const timer = setInterval(() => {
      const next = queue.shift();
      next?.letIn();
      if (next !== undefined) return;
      clearInterval(timer);
      queues.delete(key);
    }, intervalMilliseconds).unref();
  };

  return (key, client, failures) => {
    const queue = queues.get(key);
    if (queue === undefined) {
      open(key);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      // What one client has waiting counts against its next attempt as failures do.
      const rank = failures + queue.filter((other) => other.client === client).length;
      const place = queue.findIndex((other) => other.rank > rank);
      const waiting = { client, rank, letIn: resolve, refuse: reject };
      queue.splice(place === -1 ? queue.length : place, 0, waiting);
      if (queue.length > waitingMax) queue.pop()?.refuse(tooMany());
    });
  };
}

function tooMany(): AppError {
  return new AppError('overloaded', 'Too many logins are waiting. Try again later.', {
    retryAfterSeconds: Math.ceil((intervalMilliseconds * waitingMax) / 1000),
  });
}

/** Keys of a fixed length, whatever the name; no name makes the key of an address. */
function toKeys({ username, address }: LoginAttempt) {
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
