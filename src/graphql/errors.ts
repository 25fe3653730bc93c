/**
 * Errors as clients see them: a sentence, places, and a code (R24). Internal errors are masked
 * and logged; what a client sent is never repeated at length.
 */

import { GraphQLError, type SourceLocation } from 'graphql';
import { AppError, type ErrorCode, httpStatusOf } from '../errors.ts';
import type { Log } from '../log.ts';

/** R24, and the one code that clients of persisted queries wait for, as in docs/errors.md. */
export type GraphqlCode =
  | 'GRAPHQL_PARSE_FAILED'
  | 'GRAPHQL_VALIDATION_FAILED'
  | 'BAD_USER_INPUT'
  | 'NOT_FOUND'
  | 'UNAUTHENTICATED'
  | 'PAYLOAD_TOO_LARGE'
  | 'UNAVAILABLE'
  | 'STORAGE_FULL'
  | 'INTERNAL_SERVER_ERROR'
  | 'PERSISTED_QUERY_NOT_FOUND';

/** One error of a result, ready for `JSON.stringify`. */
export interface GraphqlError {
  readonly message: string;
  readonly locations?: readonly SourceLocation[];
  readonly path?: readonly (string | number)[];
  readonly extensions: {
    readonly code: GraphqlCode;
    readonly requestId?: string;
    /** As `Retry-After` says it over REST. */
    readonly retryAfterSeconds?: number;
  };
}

/** The code of an error of the rest of the service, by its HTTP status. */
function toGraphqlCode(code: ErrorCode): GraphqlCode {
  const status = httpStatusOf[code];
  return codeOfStatus[status] ?? (status < 500 ? 'BAD_USER_INPUT' : 'INTERNAL_SERVER_ERROR');
}

const codeOfStatus: Readonly<Record<number, GraphqlCode>> = {
  401: 'UNAUTHENTICATED',
  404: 'NOT_FOUND',
  413: 'PAYLOAD_TOO_LARGE',
  414: 'PAYLOAD_TOO_LARGE',
  429: 'PAYLOAD_TOO_LARGE',
  431: 'PAYLOAD_TOO_LARGE',
  503: 'UNAVAILABLE',
  507: 'STORAGE_FULL',
};

/** Messages of graphql-js can hold what the client sent, which can be long. */
const messageLengthMax = 300;
/** One validation error can name every node of a document. */
const locationsMax = 10;

/** An error without a place. */
export function toPlainError(code: GraphqlCode, message: string): GraphqlError {
  return { message: cut(message), extensions: { code } };
}

export function toRefusal({ code, message, facts }: AppError): GraphqlError {
  const refusal = toPlainError(toGraphqlCode(code), message);
  const { retryAfterSeconds } = facts;
  if (retryAfterSeconds === undefined) return refusal;
  return { ...refusal, extensions: { ...refusal.extensions, retryAfterSeconds } };
}

/** True where the store is the reason: the same request may succeed later. */
export function isOutage({ extensions: { code } }: GraphqlError): boolean {
  return code === 'UNAVAILABLE' || code === 'STORAGE_FULL';
}

/** True where the server, and not the request, is the reason. */
export function isOverload(error: unknown): boolean {
  return error instanceof AppError && error.code === 'overloaded';
}

/** An error of graphql-js about a document or a request: its message is meant for the client. */
export function toRequestError(error: GraphQLError, code: GraphqlCode): GraphqlError {
  return { ...place(error), message: cut(error.message), extensions: { code } };
}

/** A request that cannot run, thrown on the way to its operation. At least one error. */
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

/** Of one result: enough to find a mistake by, and an answer stays small. */
export const errorsMax = 20;

export interface Masking {
  readonly requestId: string;
  readonly log: Log;
}

/** The errors of an execution. The first internal error is logged with the request's id. */
export function toFieldErrors(
  errors: readonly GraphQLError[],
  { requestId, log }: Masking,
): readonly GraphqlError[] {
  let logged = false;
  return errors.slice(0, errorsMax).map((error) => {
    const known = describe(error);
    if (known !== undefined) return { ...place(error), ...known };
    if (!logged) {
      const reason = error.originalError?.stack ?? error.message;
      log('error', 'graphql field failed', { requestId, path: error.path?.join('.'), reason });
      logged = true;
    }
    const extensions = { code: 'INTERNAL_SERVER_ERROR', requestId } as const;
    return { ...place(error), message: 'Internal server error', extensions };
  });
}

/** Message and code of an error that is meant for the client; undefined for any other. */
function describe(error: GraphQLError): Omit<GraphqlError, 'locations' | 'path'> | undefined {
  const origin = error.originalError;
  if (origin instanceof AppError) return toRefusal(origin);
  // graphql-js about variables (no path yet) and arguments (a node of the document). What it says
  // of output has no node of its own, and would show what the store holds.
  const isInput =
    origin === undefined ||
    (origin instanceof GraphQLError && (error.path === undefined || origin.nodes !== undefined));
  return isInput ? toPlainError('BAD_USER_INPUT', error.message) : undefined;
}

function place({ locations, path }: GraphQLError): Pick<GraphqlError, 'locations' | 'path'> {
  return {
    ...(locations !== undefined && { locations: locations.slice(0, locationsMax) }),
    ...(path !== undefined && { path }),
  };
}

function cut(message: string): string {
  if (message.length <= messageLengthMax) return message;
  // The cut can fall between the halves of a surrogate pair.
  return `${message.slice(0, messageLengthMax).toWellFormed()}…`;
}
