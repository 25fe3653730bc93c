/**
 * The one error type for expected failures: a code from a closed list, a sentence for a person, and
 * facts. It is thrown where bad input is found. `http/problem.ts` turns it into a response for REST
 * and `graphql/errors.ts` into one for GraphQL. Code never branches on a message.
 */

/** Every code with its HTTP status (R5, R6), as in docs/errors.md. */
export const httpStatusOf = {
  malformed_request: 400,
  invalid_idempotency_key: 400,
  invalid_host: 400,
  invalid_parameter: 400,
  invalid_json: 400,
  invalid_multipart: 400,
  invalid_patch: 400,
  invalid_graphql_request: 400,
  invalid_credentials: 401,
  missing_token: 401,
  invalid_token: 401,
  forbidden: 403,
  foreign_origin: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_timeout: 408,
  patch_not_applicable: 409,
  request_in_progress: 409,
  precondition_failed: 412,
  content_too_large: 413,
  target_too_long: 414,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  unsupported_expectation: 417,
  invalid_body: 422,
  idempotency_key_reused: 422,
  upgrade_required: 426,
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

/** The codes of GraphQL errors: of R24, R46, R48 and persisted queries, as in docs/graphql.md. */
export const graphqlCodes = [
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'BAD_USER_INPUT',
  'NOT_FOUND',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'PAYLOAD_TOO_LARGE',
  'TOO_MANY_REQUESTS',
  'UNAVAILABLE',
  'STORAGE_FULL',
  'INTERNAL_SERVER_ERROR',
  'PERSISTED_QUERY_NOT_FOUND',
] as const;
export type GraphqlCode = (typeof graphqlCodes)[number];

/** A stable name for the kind of error; part of the public contract. */
export type ErrorCode = keyof typeof httpStatusOf;

/** One refused member of a body: a pointer to it (RFC 6901) and the reason. */
export interface FieldError {
  readonly pointer: string;
  readonly message: string;
}

/** Values that a response needs in addition to the code. Most errors have none. */
interface ErrorFacts {
  /** The refused members of the body. */
  readonly errors?: readonly FieldError[];
  /** The refused parameter of the query string. */
  readonly parameter?: string;
  /** Headers that the status needs, such as `Allow` (405): name, value, name, value. */
  readonly headers?: readonly string[];
  /** Whole seconds to wait, for `Retry-After` (429, 503). */
  readonly retryAfterSeconds?: number;
  /** The connection cannot be used further: it is closed after the response. */
  readonly close?: boolean;
}

/** Bad input, a missing resource or a limit: reported in full, never logged as a fault. */
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

/** A 503 for what may succeed a moment later. */
export function overloaded(message: string, retryAfterSeconds = 1): AppError {
  return new AppError('overloaded', message, { retryAfterSeconds });
}

/** A 422 for a body with wrong members, with one pointer for each fault (R5). */
export function invalidBody(errors: readonly FieldError[]): AppError {
  const places = errors.map(({ pointer }) => pointer).filter((pointer) => pointer !== '');
  const at = places.length === 0 ? '' : ` at ${places.join(', ')}`;
  return new AppError('invalid_body', `The request body is not valid${at}.`, { errors });
}

/** The text of an error for a log line. */
export function toReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The text of an error with its stack, for an error that is a fault of the service. */
export function toStack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** The code of an error of the system or a package, such as `ENOENT`; undefined without one. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
