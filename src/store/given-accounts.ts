/** Accounts that are given at every start (R20): looked up in memory, whatever the driver. */

import type { Account } from './model.ts';
import type { Accounts } from './store.ts';

export function createGivenAccounts(accounts: readonly Account[]): Accounts {
  const byUsername = new Map(accounts.map((account) => [account.username, account]));
  return { find: (username) => byUsername.get(username) };
}
