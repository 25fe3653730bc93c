/**
 * The accounts whose tokens opened subscriptions (R36). They are looked up at an interval: a
 * subscription ends when its account is not current any more. A token that expires ends none.
 */

import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Access } from '../../auth/access.ts';
import type { Account } from '../../store/model.ts';
import { toPlainError } from '../errors.ts';
import type { Ending, Subscriber } from './subscriber.ts';

const intervalMilliseconds = 15_000;
/** Accounts that are looked up in one iteration of the event loop. */
const accountsAtOnce = 64;

const message = 'The account was removed, or its password was changed.';
const revoked: Ending = { kind: 'revoked', errors: [toPlainError('UNAUTHENTICATED', message)] };

export function createViewers(isCurrent: Access['isCurrent']) {
  const viewers = new Map<Subscriber, Account>();

  const check = async ([subscriber, account]: [Subscriber, Account]): Promise<void> => {
    if (!(await isCurrent(account)) && viewers.has(subscriber)) subscriber.end(revoked);
  };
  const checkAll = async (): Promise<void> => {
    const all = Array.from(viewers);
    while (all.length > 0) {
      await Promise.all(all.splice(-accountsAtOnce).map(check));
      await nextIteration();
    }
  };
  // While the store is away nothing is known of any account: the next interval asks again.
  const look = (): void => void checkAll().catch(() => undefined);
  const timer = setInterval(look, intervalMilliseconds).unref();

  return {
    add: (subscriber: Subscriber, account: Account) => void viewers.set(subscriber, account),
    remove: (subscriber: Subscriber) => void viewers.delete(subscriber),
    close: (): void => clearInterval(timer),
  };
}
