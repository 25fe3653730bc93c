/**
 * Errors as clients see them: a message, locations and a code (R24). Internal errors are masked and
 * logged; a client's input is never repeated at length.
 */

import { GraphQLError, type SourceLocation } from 'graphql';
import { AppError, type GraphqlCode, httpStatusOf, toStack } from '../errors.ts';
import type { Log } from '../log.ts';
import type { GraphqlMetrics } from '../watch/service-metrics.ts';

/** One error of a result, ready for `JSON.stringify`. */
export interface GraphqlError {
  readonly message: string;
  readonly locations?: readonly SourceLocation[];
  readonly path?: readonly (string | number)[];
  readonly extensions: {
    readonly code: GraphqlCode;
    readonly requestId?: string;
    /** The value that REST sends in `Retry-After`. */
    readonly retryAfterSeconds?: number;
  };
}

/** The codes of errors of the rest of the service, by their HTTP status. */
const codeOfStatus: Readonly<Record<number, GraphqlCode>> = {
  401: 'UNAUTHENTICATED',
  404: 'NOT_FOUND',
  // Of the errors with 409 only `request_in_progress` (R40) can come from here.
  409: 'UNAVAILABLE',
  413: 'PAYLOAD_TOO_LARGE',
  429: 'TOO_MANY_REQUESTS',
  503: 'UNAVAILABLE',
  507: 'STORAGE_FULL',
};

/** Messages of graphql-js can contain the client's input, which can be long. */
const messageLengthMax = 300;
/** A validation error can list every node of a document. */
const locationsMax = 10;

/** An error without locations and path. */
export function toPlainError(code: GraphqlCode, message: string): GraphqlError {
  return { message: cut(message), extensions: { code } };
}

/** An internal error, which is logged with the request id. */
export function toMasked(requestId: string): GraphqlError {
  const extensions = { code: 'INTERNAL_SERVER_ERROR', requestId } as const;
  return { message: 'Internal server error', extensions };
}

export function toRefusal({ code, message, facts }: AppError): GraphqlError {
  const status = httpStatusOf[code];
  const other = status < 500 ? 'BAD_USER_INPUT' : 'INTERNAL_SERVER_ERROR';
  const isForbidden = code === 'forbidden';
  const shown = isForbidden ? 'FORBIDDEN' : (codeOfStatus[status] ?? other);
  const refusal = toPlainError(shown, message);
  const { retryAfterSeconds } = facts;
  if (retryAfterSeconds === undefined) return refusal;
  return { ...refusal, extensions: { ...refusal.extensions, retryAfterSeconds } };
}

/** True if the store caused it, so that the same request may succeed later. */
export function isOutage({ extensions: { code } }: GraphqlError): boolean {
  return code === 'UNAVAILABLE' || code === 'STORAGE_FULL';
}

/** True for what refuses the whole operation if it has nothing else: it can be sent again. */
export function isRefusal(error: GraphqlError): boolean {
  return isOutage(error) || error.extensions.code === 'TOO_MANY_REQUESTS';
}

/** An error of graphql-js about a document or request, whose message is meant for the client. */
export function toRequestError(error: GraphQLError, code: GraphqlCode): GraphqlError {
  return { ...positionOf(error), message: cut(error.message), extensions: { code } };
}

/** Thrown for an operation that has no data: it did not run. Has at least one error. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly errors: readonly GraphqlError[];

  constructor(errors: readonly GraphqlError[]) {
    super('The request cannot run.');
    this.errors = errors;
  }
}

export function refuseRequest(code: GraphqlCode, message: string): RequestError {
  return new RequestError([toPlainError(code, message)]);
}

/** The codes of what was thrown in place of a result. */
function codesOf(error: unknown): readonly GraphqlCode[] {
  if (error instanceof RequestError) return error.errors.map(({ extensions }) => extensions.code);
  return [(error instanceof AppError ? toRefusal(error) : toMasked('')).extensions.code];
}

/** Counts what a client is told, whatever the status of the response. */
export function createErrorCounter(metrics: GraphqlMetrics | undefined, log: Log) {
  const count = (codes: readonly GraphqlCode[]): readonly GraphqlCode[] => {
    for (const code of codes) metrics?.graphqlError(code);
    return codes;
  };
  /** Counts an error in place of a result; returns its codes. */
  const countRefusal = (error: unknown): readonly GraphqlCode[] => count(codesOf(error));
  /** As `countRefusal`, but returns its errors, and logs an internal one. */
  const refuse = (error: unknown, requestId: string): readonly GraphqlError[] => {
    countRefusal(error);
    return toErrors(error, log, requestId);
  };
  return { count, countRefusal, refuse };
}

export type ErrorCounter = ReturnType<typeof createErrorCounter>;

/** Why an operation did not run, whatever was thrown. Internal errors are masked and logged. */
export function toErrors(error: unknown, log: Log, requestId: string): readonly GraphqlError[] {
  if (error instanceof RequestError) return error.errors;
  if (error instanceof AppError) return [toRefusal(error)];
  log('error', 'graphql operation failed', { requestId, reason: toStack(error) });
  return [toMasked(requestId)];
}

/** The errors of one result: enough to find a mistake, while the result stays small. */
export const errorsMax = 20;

/**
 * The errors of an execution. The first internal error is logged with the request id, and so is a
 * full store, which the status of the response need not show.
 */
export function toFieldErrors(
  errors: readonly GraphQLError[],
  requestId: string,
  log: Log,
): readonly GraphqlError[] {
  let isLogged = false;
  const logFirst: Log = (level, event, facts) => {
    if (!isLogged) log(level, event, { requestId, ...facts });
    isLogged = true;
  };
  return errors.slice(0, errorsMax).map((error) => {
    const described = describe(error);
    if (described?.extensions.code === 'STORAGE_FULL') {
      logFirst('warn', 'storage full', { reason: described.message });
    }
    if (described !== undefined) return { ...positionOf(error), ...described };
    const reason = error.originalError?.stack ?? error.message;
    logFirst('error', 'graphql field failed', { path: error.path?.join('.'), reason });
    return { ...positionOf(error), ...toMasked(requestId) };
  });
}

/** Message and code of an error that is meant for the client; undefined for any other. */
function describe(error: GraphQLError): Omit<GraphqlError, 'locations' | 'path'> | undefined {
  const origin = error.originalError;
  if (origin instanceof AppError) return toRefusal(origin);
  // graphql-js reports errors about variables (no path yet) and arguments (a node of the document).
  // Its errors about output have no node, and would reveal what the store holds.
  const isInput =
    origin === undefined ||
    (origin instanceof GraphQLError && (error.path === undefined || origin.nodes !== undefined));
  return isInput ? toPlainError('BAD_USER_INPUT', error.message) : undefined;
}

function positionOf({ locations, path }: GraphQLError): Pick<GraphqlError, 'locations' | 'path'> {
  return {
    ...(locations !== undefined && { locations: locations.slice(0, locationsMax) }),
    ...(path !== undefined && { path }),
  };
}

function cut(message: string): string {
  if (message.length <= messageLengthMax) return message;
  // The cut can separate the halves of a surrogate pair.
  return `${message.slice(0, messageLengthMax).toWellFormed()}…`;
}
