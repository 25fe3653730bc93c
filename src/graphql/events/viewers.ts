/**
 * The accounts whose tokens opened subscriptions (R36). They are looked up at an interval: a
 * subscription ends when its account was removed or has another password, and goes on with the
 * roles that the account has now. A token that expires ends none.
 *
 * A change is known after 15 seconds at most, also if two of three lookups fail: each account is
 * looked up by itself, so that the others of its round are asked in any case.
 */

import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Access } from '../../auth/access.ts';
import type { Account } from '../../store/model.ts';
import { toPlainError } from '../errors.ts';
import type { Ending, Subscriber } from './subscriber.ts';

const intervalMilliseconds = 4_500;
/** Accounts that are looked up in one iteration of the event loop. */
const accountsAtOnce = 64;

const message = 'The account was removed, or its password was changed.';
const revoked: Ending = { kind: 'revoked', errors: [toPlainError('UNAUTHENTICATED', message)] };

interface Watched {
  readonly account: Account;
  readonly update: (account: Account) => void;
}

export function createViewers(currentOf: Access['currentOf']) {
  const viewers = new Map<Subscriber, Watched>();
  let round: Promise<void> | undefined;

  const check = async ([subscriber, { account, update }]: [Subscriber, Watched]): Promise<void> => {
    try {
      const current = await currentOf(account);
      if (!viewers.has(subscriber)) return;
      if (current === undefined) subscriber.end(revoked);
      else update(current);
    } catch {
      // The store has failed: the next round asks again.
    }
  };
  const checkAll = async (): Promise<void> => {
    const all = Array.from(viewers);
    const checks: Promise<void>[] = [];
    // None waits for the answers of those before it: a slow store joins them.
    while (all.length > 0) {
      checks.push(...all.splice(-accountsAtOnce).map(check));
      await nextIteration();
    }
    await Promise.all(checks);
  };
  const look = (): void => {
    round ??= checkAll().finally(() => (round = undefined));
  };
  const timer = setInterval(look, intervalMilliseconds).unref();

  return {
    /** `update` is called with the account as it is now. */
    add(subscriber: Subscriber, account: Account, update: Watched['update']): void {
      viewers.set(subscriber, { account, update });
    },
    remove: (subscriber: Subscriber) => void viewers.delete(subscriber),
    close: (): void => clearInterval(timer),
  };
}
