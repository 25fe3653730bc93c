/**
 * The one error that carries meaning: a code out of a closed list, a sentence for a person, and
 * facts. It is thrown where bad input is found; `http/problem.ts` turns it into a
 * response for REST and `graphql/errors.ts` into one for GraphQL. No code branches on a message.
 */

/** Every code, with the HTTP status that it is answered with (R5, R6), as in docs/errors.md. */
export const httpStatusOf = {
  malformed_request: 400,
  invalid_host: 400,
  invalid_parameter: 400,
  invalid_json: 400,
  invalid_multipart: 400,
  invalid_patch: 400,
  invalid_graphql_request: 400,
  invalid_credentials: 401,
  missing_token: 401,
  invalid_token: 401,
  foreign_origin: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_timeout: 408,
  patch_not_applicable: 409,
  precondition_failed: 412,
  content_too_large: 413,
  target_too_long: 414,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  unsupported_expectation: 417,
  invalid_body: 422,
  too_many_requests: 429,
  headers_too_large: 431,
  internal_error: 500,
  not_implemented: 501,
  overloaded: 503,
  unavailable: 503,
  draining: 503,
  http_version_not_supported: 505,
  storage_full: 507,
} as const;

/** A stable name for what went wrong; part of the public contract. */
export type ErrorCode = keyof typeof httpStatusOf;

/** One refused member of a body: where (RFC 6901 pointer) and why. */
export interface FieldError {
  readonly pointer: string;
  readonly message: string;
}

/** What an answer needs beside the code. Every member is optional; most errors have none. */
export interface ErrorFacts {
  /** Refused members of the body. */
  readonly errors?: readonly FieldError[];
  /** The refused parameter of the query. */
  readonly parameter?: string;
  /** Methods the resource has, for `Allow` (405). */
  readonly allow?: string;
  /** Media types that would do, for `Accept` or `Accept-Patch` (415). */
  readonly accept?: string;
  readonly acceptPatch?: string;
  /** What there is, for `Content-Range` (416). */
  readonly contentRange?: string;
  /** Whole seconds to wait, for `Retry-After` (429, 503). */
  readonly retryAfterSeconds?: number;
  /** The version of WebSocket that is spoken here (RFC 6455 §4.4). */
  readonly webSocketVersion?: string;
  /** RFC 6750 `error` attribute for `WWW-Authenticate`, where a token was sent (401). */
  readonly bearerError?: 'invalid_request' | 'invalid_token';
  /** The connection cannot be used further: answer, then close. */
  readonly close?: boolean;
}

/** Bad input, a missing thing or a limit: expected, answered in full, never logged as a fault. */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message);
    this.code = code;
    this.facts = facts;
  }
}

/** Refuses a body whose members are wrong: 422 with one pointer per fault (R5). */
export function invalidBody(errors: readonly FieldError[]): AppError {
  const places = errors.map(({ pointer }) => pointer).filter((pointer) => pointer !== '');
  const at = places.length === 0 ? '' : ` at ${places.join(', ')}`;
  return new AppError('invalid_body', `The request body is not valid${at}.`, { errors });
}

/** The text of an error in a line of the log. */
export function toReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
