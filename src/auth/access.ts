/**
 * Who sends a request (R22, RFC 6750 §2.1), and what its account may read and write, by
 * REQUIRE_AUTH (R23, R36).
 */

import type { Config } from '../config.ts';
import { type Reader, toReader } from '../domain/readers.ts';
import { AppError } from '../errors.ts';
import type { Handler, HttpRequest, HttpResponse } from '../http/message.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Account } from '../store/model.ts';
import type { Store } from '../store/store.ts';
import type { ServiceMetrics, TokenRefusal } from '../watch/service-metrics.ts';
import type { Tokens } from './jwt.ts';

/** `account` is set to the name of the account of its token. */
type WithHeaders = Pick<HttpRequest, 'header'> & Partial<Pick<HttpRequest, 'account'>>;

interface AccessDeps {
  readonly tokens: Pick<Tokens, 'verify' | 'renew'>;
  readonly accounts: Pick<Store['accounts'], 'find'>;
  readonly requireAuth: Config['requireAuth'];
  readonly metrics?: Pick<ServiceMetrics, 'tokenRefused'> | undefined;
}

export type Access = ReturnType<typeof createAccess>;

/** A handler that is told who asks. */
export type ReaderHandler = (
  request: HttpRequest,
  reader: Reader | undefined,
) => MaybePromise<HttpResponse>;

export function createAccess({ tokens, accounts, requireAuth, metrics }: AccessDeps) {
  const refuse = (fault: TokenRefusal, message = invalidToken): never => {
    metrics?.tokenRefused(fault);
    throw new AppError('invalid_token', message);
  };
  const sessionOf = (request: WithHeaders) => {
    const authorization = request.header('authorization');
    if (authorization === undefined) return undefined;
    const scheme = bearerStart.exec(authorization)?.[0];
    // No token was sent: the response names no error (RFC 6750 §3.1).
    if (scheme === undefined) throw missingToken();
    const claims = tokens.verify(authorization.slice(scheme.length));
    if (typeof claims === 'string') return refuse(claims);
    // A removed account ends its tokens (R22), and so does another password (R42).
    return andThen(accounts.find(claims.sub), (account) => {
      if (account === undefined || !claims.isOf(account)) return refuse('account');
      request.account = account.username;
      return { account, claims };
    });
  };
  /**
   * Returns the account, without a promise if the store does; undefined for a request without an
   * `Authorization` header (R23). Throws `missing_token` for another scheme than bearer, and
   * `invalid_token` if the token is not valid or its account was removed or has another password.
   */
  const viewerOf = (request: WithHeaders): MaybePromise<Account | undefined> =>
    andThen(sessionOf(request), (session) => session?.account);
  /** As `viewerOf`, but throws `missing_token` without the header too. */
  const authenticate = (request: WithHeaders): MaybePromise<Account> =>
    andThen(viewerOf(request), (account) => {
      if (account === undefined) throw missingToken();
      return account;
    });
  const guard = (handler: Handler): Handler => {
    return (request) => andThen(authenticate(request), () => handler(request));
  };
  const noGuard = (handler: Handler): Handler => handler;
  const hasOwners = requireAuth === 'owners' || requireAuth === 'members';
  const writesNeedToken = requireAuth !== 'none';
  const readsNeedToken = requireAuth === 'members';
  const findAccount: typeof viewerOf = readsNeedToken ? authenticate : viewerOf;
  const readerOf = (request: WithHeaders): MaybePromise<Reader | undefined> =>
    hasOwners ? andThen(findAccount(request), toReader) : undefined;

  return {
    authenticate,
    viewerOf,
    /** Returns a new token of the session of the given one (R42). Throws as `authenticate` does. */
    refresh: (request: WithHeaders): MaybePromise<string> =>
      andThen(sessionOf(request), (session) => {
        if (session === undefined) throw missingToken();
        const token = tokens.renew(session.claims, session.account);
        return token ?? refuse('session', 'The session has ended: log in again.');
      }),
    /** The account as it is now; undefined if it was removed or has another password since. */
    currentOf: ({ username, passwordHash: hash }: Account): MaybePromise<Account | undefined> =>
      andThen(accounts.find(username), (now) => (now?.passwordHash === hash ? now : undefined)),
    writesNeedToken,
    readsNeedToken,
    /** For routes that change data: lets only requests that may do so reach the handler. */
    writing: writesNeedToken ? guard : noGuard,
    /** For routes that only read: as `writing`. */
    reading: readsNeedToken ? guard : noGuard,
    hasOwners,
    /** Who asks, if posts have owners: without a token only where reading needs none. */
    readerOf,
    /** As `reading`, for routes whose records do not exist for everybody (R44). */
    readingAs: passing(readerOf),
  };
}

/** Wraps handlers that are told who asks. */
function passing(readerOf: (request: HttpRequest) => MaybePromise<Reader | undefined>) {
  return (handler: ReaderHandler): Handler => {
    return (request) => andThen(readerOf(request), (reader) => handler(request, reader));
  };
}

/** One message for every fault of a token. */
const invalidToken = 'The access token is not valid or has expired.';

/** The scheme's name in any case, then blanks (RFC 9110 §11.1, §11.4). */
const bearerStart = /^bearer(?: +|$)/i;

function missingToken(): AppError {
  const message = 'This needs an access token: Authorization: Bearer <token>.';
  return new AppError('missing_token', message);
}

/** Finds the viewer before the turn of an operation: what awaits in a turn has lost it. */
export async function findBefore(
  find: () => MaybePromise<Account | undefined>,
): Promise<() => Account | undefined> {
  try {
    const account = await find();
    return () => account;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
