/**
 * Limits failed logins (R21). Too many failures of one account from one address lock that account
 * for that address only. Many failures of one account, or from one address, lock nothing: further
 * logins of it are then admitted one at a time, so that no client can lock out others.
 */

import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError, overloaded } from '../errors.ts';
import type { FailureCount, LoginFailures } from '../store/store.ts';

/** One attempt to log in. */
export interface LoginAttempt {
  readonly username: string;
  /** The client's address in canonical form (R34). */
  readonly address: string;
}

export interface LoginLimiterOptions {
  /** Failures of one account from one address that are allowed in a minute. */
  readonly failuresMax: number;
  /** Milliseconds of a monotonic clock: setting the system time back must not prolong a lock. */
  readonly now: () => number;
  /** The counters that all nodes share; undefined if only this process counts. */
  readonly shared?: LoginFailures | undefined;
}

/** Logins of an account or an address are queued after this many times `failuresMax` failures. */
const wideFactor = 10;

export type LoginLimiter = ReturnType<typeof createLoginLimiter>;

export function createLoginLimiter({ failuresMax, now, shared }: LoginLimiterOptions) {
  // With a shared counter: the failures that the store refused to record (full, or read-only).
  const counts = new FailureCounts(now);
  const waitInQueue = createLoginQueue((key) =>
    shared?.takeTurn(key, intervalMilliseconds).then(pause).catch(ifRefused()),
  );

  /** Returns the failures of each key. Rejects if the pair of account and address has too many. */
  const check = async (keys: ReturnType<typeof toKeys>) => {
    const found = shared && (await shared.find(Object.values(keys)));
    const find = (key: string): FailureCount => {
      const [here, there] = [counts.find(key), found?.get(key)];
      return there === undefined || here.count > there.count ? here : there;
    };
    const { count: pair, millisecondsLeft } = find(keys.pair);
    if (pair < failuresMax) {
      return { pair, account: find(keys.account).count, network: find(keys.network).count };
    }
    throw new AppError('too_many_requests', 'Too many failed logins. Try again later.', {
      retryAfterSeconds: Math.ceil(millisecondsLeft / 1000),
    });
  };

  return {
    /**
     * Resolves with the failures of this account from this address when the password may be
     * checked. Rejects with `too_many_requests` if there were too many failures, and with
     * `overloaded` if too many logins wait.
     */
    async enter(attempt: LoginAttempt): Promise<number> {
      const keys = toKeys(attempt);
      let failures = await check(keys);
      // The address comes first, so that a flood from it does not fill the account's queue.
      for (const name of ['network', 'account'] as const) {
        if (failures[name] < failuresMax * wideFactor) continue;
        await waitInQueue(keys[name], keys.pair, failures.pair);
        failures = await check(keys);
      }
      return failures.pair;
    },
    async fail(attempt: LoginAttempt): Promise<void> {
      const keys = Object.values(toKeys(attempt));
      const count = (): void => keys.forEach((key) => counts.add(key));
      await (shared?.add(keys, windowMilliseconds).catch(ifRefused(count)) ?? count());
    },
    /** Forgets the failures of this pair of account and address, not those of either alone. */
    async succeed(attempt: LoginAttempt): Promise<void> {
      const { pair } = toKeys(attempt);
      counts.forget(pair);
      await shared?.forget(pair).catch(ifRefused());
    },
  };
}

/** Ignores a refusal by the store (unavailable or full), and calls `instead` if it is given. */
function ifRefused(instead?: () => void): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof AppError)) throw error;
    instead?.();
  };
}

const windowMilliseconds = 60_000;

/**
 * Keys counted at the same time. A failure adds three keys and needs a password check, and a minute
 * has time for about 3,000 checks: no client can push out a count before its window ends.
 */
export const countedMax = 32_768;

/** Counts failures by key, each for one minute from its first failure, in bounded memory. */
export class FailureCounts {
  readonly #now: () => number;
  // Every window has the same length, so the oldest entry ends first.
  readonly #windows = new Map<string, { readonly end: number; count: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the failures of this key, and how long they still count. */
  find(key: string): FailureCount {
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

/** The interval between two logins of one key. */
const intervalMilliseconds = 500;

/** Logins that may wait for one key: the last of them waits 20 seconds. */
export const waitingMax = 40;

interface Waiting {
  readonly client: string;
  readonly rank: number;
  readonly letIn: () => void;
  readonly refuse: (error: unknown) => void;
}

/**
 * Admits the logins of one key one at a time, at an interval that all nodes share. Among the logins
 * at this node, the client with the fewest failures goes first. Rejects with `overloaded` if too
 * many wait: the last of the queue is then refused.
 */
function createLoginQueue(
  takeTurn: (key: string) => Promise<unknown> | undefined,
): (key: string, client: string, failures: number) => Promise<void> {
  // A queue is removed when an interval ends without a waiting login.
  const queues = new Map<string, Waiting[]>();

  const open = (key: string): Waiting[] => {
    const queue: Waiting[] = [];
    queues.set(key, queue);
    let hasTurn = false;
    /** Takes one turn at a time: other nodes may take turns in between. */
    const letNextIn = async (): Promise<void> => {
      if (hasTurn) return;
      if (queue.length === 0) {
        clearInterval(timer);
        queues.delete(key);
        return;
      }
      hasTurn = true;
      try {
        await takeTurn(key);
        queue.shift()?.letIn();
      } catch (error) {
        queue.shift()?.refuse(error);
      }
      hasTurn = false;
    };
    const timer = setInterval(() => void letNextIn(), intervalMilliseconds).unref();
    queueMicrotask(() => void letNextIn());
    return queue;
  };

  return (key, client, failures) => {
    const queue = queues.get(key) ?? open(key);
    return new Promise((resolve, reject) => {
      // Logins of the same client that already wait count like failures.
      const rank = failures + queue.filter((other) => other.client === client).length;
      const place = queue.findIndex((other) => other.rank > rank);
      const waiting = { client, rank, letIn: resolve, refuse: reject };
      queue.splice(place === -1 ? queue.length : place, 0, waiting);
      if (queue.length > waitingMax) queue.pop()?.refuse(tooMany());
    });
  };
}

function tooMany(): AppError {
  const seconds = Math.ceil((intervalMilliseconds * waitingMax) / 1000);
  return overloaded('Too many logins are waiting. Try again later.', seconds);
}

/** Account keys are hashes: their length is fixed, and none can equal an address. */
function toKeys({ username, address }: LoginAttempt) {
  const account = createHash('sha256').update(username).digest('base64');
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
