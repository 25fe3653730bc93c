/**
 * Who sends a request (R22, RFC 6750 §2.1), and what its account may read and write, by
 * REQUIRE_AUTH (R23, R36).
 */

import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import type { Handler, HttpRequest } from '../http/message.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Account } from '../store/model.ts';
import type { Store } from '../store/store.ts';
import type { Tokens } from './jwt.ts';

type WithHeaders = Pick<HttpRequest, 'header'>;

interface AccessDeps {
  readonly tokens: Pick<Tokens, 'verify'>;
  readonly accounts: Pick<Store['accounts'], 'find'>;
  readonly requireAuth: Config['requireAuth'];
}

export type Access = ReturnType<typeof createAccess>;

export function createAccess({ tokens, accounts, requireAuth }: AccessDeps) {
  /**
   * Returns the account, without a promise if the store does. Throws `missing_token` if no bearer
   * token was sent, and `invalid_token` if the token is not valid or its account was removed.
   */
  const authenticate = (request: WithHeaders): MaybePromise<Account> => {
    const authorization = request.header('authorization');
    // With another scheme no token was sent: the response names no error (RFC 6750 §3.1).
    const scheme = bearerStart.exec(authorization ?? '')?.[0];
    if (authorization === undefined || scheme === undefined) {
      const message = 'This needs an access token: Authorization: Bearer <token>.';
      throw new AppError('missing_token', message);
    }
    const claims = tokens.verify(authorization.slice(scheme.length));
    if (claims === undefined) throw invalidToken();
    return andThen(accounts.find(claims.sub), (account) => {
      // A removed account ends its tokens (R22).
      if (account === undefined) throw invalidToken();
      return account;
    });
  };
  const guard = (handler: Handler): Handler => {
    return (request) => andThen(authenticate(request), () => handler(request));
  };
  const noGuard = (handler: Handler): Handler => handler;
  const hasOwners = requireAuth === 'owners' || requireAuth === 'members';
  const writesNeedToken = requireAuth !== 'none';
  const readsNeedToken = requireAuth === 'members';

  return {
    authenticate,
    /** The same, but undefined for a request without an `Authorization` header (R23). */
    viewerOf: (request: WithHeaders): MaybePromise<Account | undefined> =>
      request.header('authorization') === undefined ? undefined : authenticate(request),
    writesNeedToken,
    readsNeedToken,
    /** For routes that change data: lets only requests that may do so reach the handler. */
    writing: writesNeedToken ? guard : noGuard,
    /** The same for routes that only read. */
    reading: readsNeedToken ? guard : noGuard,
    /** Throws 403 if the account of the request may not change what this account has written. */
    async checkOwner(request: WithHeaders, authorId: string | null): Promise<void> {
      if (!hasOwners) return;
      const { id, roles } = await authenticate(request);
      if (id === authorId || roles.includes('ADMIN')) return;
      throw new AppError('forbidden', 'Only the author, or an administrator, may change this.');
    },
  };
}

/** The scheme's name in any case, then blanks (RFC 9110 §11.1, §11.4). */
const bearerStart = /^bearer(?: +|$)/i;

function invalidToken(): AppError {
  return new AppError('invalid_token', 'The access token is not valid or has expired.');
}
