/**
 * Limits failed logins (R21). Those of one account from one address lock that account for that
 * address, and for no other. Many of one account, or of one address, lock nothing: from then on
 * logins under it are let in one at a time, so that no client can lock out others.
 */

import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError } from '../errors.ts';
import type { FailureCount, LoginFailures } from '../store/store.ts';

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
  /** What counts for all nodes; undefined: only this process counts. */
  readonly shared?: LoginFailures | undefined;
}

/** Logins of an account or an address are queued after this many times `failuresMax` failures. */
const wideFactor = 10;

export type LoginLimiter = ReturnType<typeof createLoginLimiter>;

export function createLoginLimiter({ failuresMax, now, shared }: LoginLimiterOptions) {
  // Where nodes count together: what the store did not take, as it may be full or only be read.
  const counts = new FailureCounts(now);
  const waitInQueue = createLoginQueue((key) =>
    shared?.takeTurn(key, intervalMilliseconds).then(pause).catch(ifRefused()),
  );

  /** How many failures each key has. Rejects where the pair has too many. */
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
     * Resolves when the password may be checked, with the failures of this account from this
     * address. Rejects with `too_many_requests` where these are too many, with `overloaded` where
     * too many wait.
     */
    async enter(attempt: LoginAttempt): Promise<number> {
      const keys = toKeys(attempt);
      let failures = await check(keys);
      // The address first: one that floods waits for itself, and not in the account's queue.
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
    /** Forgets the failures of this account from this address, not those of either by itself. */
    async succeed(attempt: LoginAttempt): Promise<void> {
      const { pair } = toKeys(attempt);
      counts.forget(pair);
      await shared?.forget(pair).catch(ifRefused());
    },
  };
}

/** What follows where the store refuses, as it does while it is away or full. */
function ifRefused(instead?: () => void): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof AppError)) throw error;
    instead?.();
  };
}

const windowMilliseconds = 60_000;

/**
 * Keys that are counted at once. Three cost a failure, which takes a check of a password, and a
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

/** Between two logins under one key. */
const intervalMilliseconds = 500;

/** Under one key: the last of them waits 20 seconds. */
export const waitingMax = 40;

interface Waiting {
  readonly client: string;
  readonly rank: number;
  readonly letIn: () => void;
  readonly refuse: (error: unknown) => void;
}

/**
 * Lets in logins under one key one at a time, at intervals, over all nodes; of those at this one
 * the client with the fewest failures goes first. Rejects with `overloaded` where too many wait
 * and this one is, or comes to be, the last of them.
 */
function createLoginQueue(
  takeTurn: (key: string) => Promise<unknown> | undefined,
): (key: string, client: string, failures: number) => Promise<void> {
  // A key stays until an interval ends in which no login has waited.
  const queues = new Map<string, Waiting[]>();

  const open = (key: string): Waiting[] => {
    const queue: Waiting[] = [];
    queues.set(key, queue);
    let hasTurn = false;
    /** Has one turn at a time: those of other nodes are in between. */
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
