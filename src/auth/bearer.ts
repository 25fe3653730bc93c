/** Finds the account that `Authorization: Bearer …` identifies (R22, RFC 6750 §2.1). */

import { AppError } from '../errors.ts';
import type { HttpRequest } from '../http/message.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Account } from '../store/model.ts';
import type { Store } from '../store/store.ts';
import type { Tokens } from './jwt.ts';

type WithHeaders = Pick<HttpRequest, 'header'>;

export interface BearerDeps {
  readonly tokens: Pick<Tokens, 'verify'>;
  readonly store: { readonly accounts: Pick<Store['accounts'], 'find'> };
}

export type Bearer = ReturnType<typeof createBearer>;

export function createBearer({ tokens, store }: BearerDeps) {
  /**
   * Returns the account, without a promise if the store does. Throws `missing_token` if no bearer
   * token was sent, and `invalid_token` if the token is not valid or its account was removed.
   */
  const authenticate = (request: WithHeaders): MaybePromise<Account> => {
    const authorization = request.header('authorization');
    if (authorization === undefined) throw missingToken();
    const claims = tokens.verify(toToken(authorization));
    if (claims === undefined) throw invalidToken();
    return andThen(store.accounts.find(claims.sub), (account) => {
      // A removed account ends its tokens (R22).
      if (account === undefined) throw invalidToken();
      return account;
    });
  };
  /** The same, but undefined for a request without an `Authorization` header (R23). */
  const authenticateIfSent = (request: WithHeaders): MaybePromise<Account | undefined> =>
    request.header('authorization') === undefined ? undefined : authenticate(request);
  return { authenticate, authenticateIfSent };
}

/** The scheme's name in any case, then blanks (RFC 9110 §11.1, §11.4). */
const bearerStart = /^bearer(?: +|$)/i;

/**
 * Returns what follows the scheme's name; `verify` checks that it is one token. With another scheme
 * no token was sent, so that the response names no error (RFC 6750 §3.1).
 */
function toToken(authorization: string): string {
  const found = bearerStart.exec(authorization);
  if (found === null) throw missingToken();
  return authorization.slice(found[0].length);
}

function missingToken(): AppError {
  const message = 'This needs an access token: Authorization: Bearer <token>.';
  return new AppError('missing_token', message);
}

function invalidToken(): AppError {
  return new AppError('invalid_token', 'The access token is not valid or has expired.');
}
