/** What several drivers do alike. */

import { AppError } from '../errors.ts';
import { andThen } from '../maybe-promise.ts';
import type { Account, Article, ArticleDraft } from './model.ts';
import type { Accounts, Versions } from './store.ts';

/** No account has a longer name (auth/accounts.ts), so the database is not asked for one. */
const usernameLengthMax = 256;

/**
 * The accounts that can log in: those configured at every start (R20), which every driver holds in
 * memory, and those in a durable store. `stored` is asked each time: changes by a command apply at
 * once, on every node.
 */
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

/** Limit for the characters of all articles in a change of all (R39). */
export const changedLengthMax = 4 * 1024 * 1024;

/** For a change of all articles beyond the limit. */
export function tooLongToChange(): AppError {
  return new AppError('content_too_large', 'All articles together are too long to be patched.');
}

/** The draft with its new id as the last member: it has a title, so that it is not empty. */
export function withId({ json }: ArticleDraft, id: number): Article {
  return { id, json: `${json.slice(0, -1)},"id":${id}}` };
}

export function createVersions(): Versions {
  return { posts: 0, comments: 0, authors: 0, todos: 0, articles: 0 };
}
