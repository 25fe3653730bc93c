/**
 * The accounts that can log in: those configured at every start (R20), which every driver holds in
 * memory, and those in a durable store.
 */

import { andThen } from '../maybe-promise.ts';
import type { Account } from './model.ts';
import type { Accounts } from './store.ts';

/** No account has a longer name (auth/accounts.ts), so the database is not asked for one. */
const usernameLengthMax = 256;

/** `stored` is asked each time: changes by a command apply at once, on every node. */
export function createAccounts(
  configured: readonly Account[],
  stored: Pick<Accounts, 'find'> = { find: () => undefined },
): Accounts {
  const byUsername = new Map(configured.map((account) => [account.username, account]));
  const findStored: Accounts['find'] = (username) =>
    username.length > usernameLengthMax ? undefined : stored.find(username);
  return {
    find: (username) => byUsername.get(username) ?? findStored(username),
    findForLogin: (username) =>
      andThen(findStored(username), (found) => byUsername.get(username) ?? found),
  };
}
