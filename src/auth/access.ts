/**
 * Who sends a request (R22, RFC 6750 §2.1), and what its account may read and write, by
 * REQUIRE_AUTH (R23, R36).
 */

import type { Config } from '../config.ts';
import { type Reader, toReader } from '../domain/readers.ts';
import { AppError } from '../errors.ts';
import { type Handler, type HttpRequest, type HttpResponse, toPersonal } from '../http/message.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import type { Account } from '../store/model.ts';
import type { Store } from '../store/store.ts';
import type { ServiceMetrics, TokenRefusal } from '../watch/service-metrics.ts';
import type { Claims, Tokens } from './jwt.ts';

/** `account` is set to the name of the account of its token. */
type WithHeaders = Pick<HttpRequest, 'header'> & Partial<Pick<HttpRequest, 'account'>>;

interface AccessDeps {
  readonly tokens: Pick<Tokens, 'verify' | 'renew'>;
  readonly accounts: Pick<Store['accounts'], 'find'>;
  readonly requireAuth: Config['requireAuth'];
  readonly comments: Config['comments'];
  readonly metrics?: Pick<ServiceMetrics, 'tokenRefused'> | undefined;
}

export type Access = ReturnType<typeof createAccess>;

/** A handler that is told who asks. */
export type ReaderHandler = (
  request: HttpRequest,
  reader: Reader | undefined,
) => MaybePromise<HttpResponse>;

/** Who sends a request, by its token. */
function createSessions({ tokens, accounts, metrics }: AccessDeps) {
  const refuse = (fault: TokenRefusal, message = invalidToken): never => {
    metrics?.tokenRefused(fault);
    throw new AppError('invalid_token', message);
  };
  const claimsOf = (request: WithHeaders) => {
    const authorization = request.header('authorization');
    if (!authorization) return undefined;
    const scheme = bearerStart.exec(authorization)?.[0];
    if (scheme === undefined) {
      const found = tokens.verify(authorization);
      const isOwn = found !== 'signature' && found !== 'malformed';
      if (isOwn || misspeltBearer.test(authorization)) return missingToken();
      // Another scheme, such as that of a proxy in front, counts as none (R23).
      return undefined;
    }
    const claims = tokens.verify(authorization.slice(scheme.length));
    return typeof claims === 'string' ? refuse(claims) : claims;
  };
  /** A removed account ends its tokens (R22), and so does another password (R42). */
  const accountOf = (claims: Claims, request: WithHeaders): MaybePromise<Account> =>
    andThen(accounts.find(claims.sub), (account) => {
      if (account === undefined || !claims.isOf(account)) return refuse('account');
      request.account = account.username;
      return account;
    });
  /**
   * Returns the account, without a promise if the store does; undefined for a request without a
   * bearer token (R23). Throws `invalid_token` if the token is not valid or its account was removed
   * or has another password.
   */
  const viewerOf = (request: WithHeaders): MaybePromise<Account> | undefined => {
    const claims = claimsOf(request);
    return claims && accountOf(claims, request);
  };
  /** As `viewerOf`, but throws `missing_token` without a token. */
  const authenticate = (request: WithHeaders): MaybePromise<Account> =>
    viewerOf(request) ?? missingToken();
  /** Returns a new token of the session of the given one (R42). Throws as `authenticate` does. */
  const refresh = (request: WithHeaders): MaybePromise<string> => {
    const claims = claimsOf(request) ?? missingToken();
    const renew = (account: Account): string =>
      tokens.renew(claims, account) ?? refuse('session', 'The session has ended: log in again.');
    return andThen(accountOf(claims, request), renew);
  };
  return { viewerOf, authenticate, refresh };
}

export function createAccess(deps: AccessDeps) {
  const { accounts, requireAuth, comments } = deps;
  const sessions = createSessions(deps);
  const { viewerOf, authenticate } = sessions;
  const guard = guarding(authenticate);
  const hasOwners = requireAuth === 'owners' || requireAuth === 'members';
  const writesNeedToken = requireAuth !== 'none';
  const readsNeedToken = requireAuth === 'members';
  const findAccount: typeof viewerOf = readsNeedToken ? authenticate : viewerOf;
  const commentsNeedToken = writesNeedToken && comments === 'accounts';
  const isModerated = comments === 'moderated';
  const hasReaders = hasOwners || isModerated;
  const asReader = (account?: Account): Reader | undefined =>
    hasReaders ? toReader(account, { hasOwners, isModerated }) : undefined;
  const readerOf = (request: WithHeaders): MaybePromise<Reader | undefined> =>
    hasReaders ? andThen(findAccount(request), asReader) : undefined;

  return {
    ...sessions,
    /** The account as it is now; undefined if it was removed or has another password since. */
    currentOf: ({ username, passwordHash: hash }: Account): MaybePromise<Account | undefined> =>
      andThen(accounts.find(username), (now) => (now?.passwordHash === hash ? now : undefined)),
    writesNeedToken,
    readsNeedToken,
    /** For routes that change data: lets only requests that may do so reach the handler. */
    writing: writesNeedToken ? guard : noGuard,
    commentsNeedToken,
    /** For the route that adds a comment (R48): as `writing`. */
    commenting: commentsNeedToken ? guard : noGuard,
    /** For routes that only read: as `writing`. */
    reading: readsNeedToken ? (handler: Handler): Handler => guard(personal(handler)) : noGuard,
    hasOwners,
    /** Whether responses depend on who asks. */
    hasReaders,
    /** Who asks, by the account of its token; undefined if everybody reads everything. */
    asReader,
    /** Who asks, without a token only where reading needs none. */
    readerOf,
    /** As `reading`, for routes whose records do not exist for everybody (R44). */
    readingAs: hasReaders ? passing(readerOf) : passNobody,
  };
}

function guarding(authenticate: (request: HttpRequest) => MaybePromise<Account>) {
  return (handler: Handler): Handler =>
    async (request) => {
      await authenticate(request);
      return handler(request);
    };
}

function noGuard(handler: Handler): Handler {
  return handler;
}

/** R6b: what depends on who asks is for that client's cache alone. */
function personal(handler: Handler): Handler {
  return async (request) => toPersonal(await handler(request));
}

/** Wraps handlers that are told who asks. */
function passing(readerOf: (request: HttpRequest) => MaybePromise<Reader | undefined>) {
  return (handler: ReaderHandler): Handler =>
    personal(async (request) => handler(request, await readerOf(request)));
}

function passNobody(handler: ReaderHandler): Handler {
  return (request) => handler(request, undefined);
}

/** One message for every fault of a token. */
const invalidToken = 'The access token is not valid or has expired.';

/** The scheme's name in any case, then blanks (RFC 9110 §11.1, §11.4). */
const bearerStart = /^bearer(?: +|$)/i;

/**
 * `Bearer:`, a tab behind it, or another scheme before it: what comes with it would be of nobody.
 */
const misspeltBearer = /(?:^|[\s,])bearer(?![\w-])/i;

function missingToken(): never {
  const message = 'This needs an access token: Authorization: Bearer <token>.';
  throw new AppError('missing_token', message);
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
