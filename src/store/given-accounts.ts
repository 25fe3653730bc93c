/**
 * Who can log in: accounts that are given at every start (R20), in memory whatever the driver, and
 * beside them those that a durable driver keeps.
 */

import { andThen } from '../maybe-promise.ts';
import type { Account } from './model.ts';
import type { Accounts, KeptAccounts } from './store.ts';

/** Longer ones are nobody's (auth/accounts.ts): no database is asked for a megabyte. */
const usernameLengthMax = 256;

/** `kept` is asked each time: what a command changes counts at once, on every node. */
export function createAccounts(
  given: readonly Account[],
  kept?: Pick<KeptAccounts, 'find'>,
): Accounts {
  const byUsername = new Map(given.map((account) => [account.username, account]));
  const findGiven: Accounts['find'] = (username) => byUsername.get(username);
  if (kept === undefined) return { find: findGiven, findForLogin: findGiven };

  const findKept: Accounts['find'] = (username) =>
    username.length > usernameLengthMax ? undefined : kept.find(username);
  return {
    find: (username) => byUsername.get(username) ?? findKept(username),
    findForLogin: (username) =>
      andThen(findKept(username), (found) => byUsername.get(username) ?? found),
  };
}
