/**
 * The accounts that can log in: those given at every start (R20), which every driver keeps in
 * memory, and those that a durable driver stores.
 */

import { andThen } from '../maybe-promise.ts';
import type { Account } from './model.ts';
import type { Accounts } from './store.ts';

/** No account has a longer name (auth/accounts.ts), so the database is not asked for one. */
const usernameLengthMax = 256;

/** `kept` is asked each time: changes by a command apply at once, on every node. */
export function createAccounts(
  given: readonly Account[],
  kept: Pick<Accounts, 'find'> = { find: () => undefined },
): Accounts {
  const byUsername = new Map(given.map((account) => [account.username, account]));
  const findKept: Accounts['find'] = (username) =>
    username.length > usernameLengthMax ? undefined : kept.find(username);
  return {
    find: (username) => byUsername.get(username) ?? findKept(username),
    findForLogin: (username) =>
      andThen(findKept(username), (found) => byUsername.get(username) ?? found),
  };
}
