/** The errors of the API reference: their shape, and an example of each code. */

import { AppError, type ErrorCode, type ErrorFacts, httpStatusOf } from '../../errors.ts';
import { toProblemText } from '../../http/problem.ts';
import type { headerMeanings } from './operations.ts';
import type { Schema } from './schemas.ts';

export const problem: Schema = {
  type: 'object',
  description: 'RFC 9457',
  properties: {
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string', enum: Object.keys(httpStatusOf) },
    error: { type: 'string', description: 'A sentence for a person.' },
    parameter: { type: 'string', description: 'The refused parameter of the query.' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        description: 'A refused member: where (RFC 6901), and why.',
        properties: { pointer: { type: 'string' }, message: { type: 'string' } },
        required: ['pointer', 'message'],
        additionalProperties: false,
      },
    },
  },
  required: ['title', 'status', 'code', 'error'],
  additionalProperties: false,
};

/** What is said with each code; some say it in several ways. */
const sentences: Readonly<Record<ErrorCode, string>> = {
  malformed_request: 'The path holds a percent-escape that is not valid.',
  invalid_host: 'A request needs one valid Host.',
  invalid_parameter: 'The parameter limit must be one whole number from 1 to 1000.',
  invalid_json: 'The body cannot be read as JSON: it is empty.',
  invalid_multipart: 'A file name holds a control character.',
  invalid_patch: 'This is no JSON Patch document: the body must be an array.',
  invalid_graphql_request: 'The query must be a string.',
  invalid_credentials: 'The username or the password is wrong.',
  missing_token: 'This request needs a bearer token.',
  invalid_token: 'The access token is not valid or has expired.',
  foreign_origin: 'Pages of other sites may not send this request.',
  not_found: 'There is no post with this id.',
  method_not_allowed: 'This resource has GET, HEAD, OPTIONS.',
  not_acceptable: 'The answer is application/json and nothing else.',
  request_timeout: 'The request did not arrive in time.',
  patch_not_applicable: 'Operation 0 cannot be applied: its target does not exist.',
  precondition_failed: 'The resource is not in the state that is asked for.',
  content_too_large: 'The body has more than 1048576 bytes.',
  target_too_long: 'The request target is too long.',
  unsupported_media_type: 'The body must be application/json in UTF-8.',
  range_not_satisfiable: 'The range is beyond the end.',
  unsupported_expectation: 'Only 100-continue can be expected.',
  invalid_body: 'The request body is not valid at /title.',
  too_many_requests: 'Too many failed logins. Try again later.',
  headers_too_large: 'The headers are too large.',
  internal_error: 'The server failed.',
  not_implemented: 'Transfer-Encoding can only be chunked.',
  overloaded: 'The server is serving too much at once.',
  unavailable: 'The database does not answer.',
  draining: 'The server is stopping.',
  http_version_not_supported: 'This server speaks HTTP/1.1.',
  storage_full: 'There is no space left for uploaded files.',
};

const factsOf: Readonly<Partial<Record<ErrorCode, ErrorFacts>>> = {
  invalid_parameter: { parameter: 'limit' },
  invalid_patch: { errors: [{ pointer: '', message: 'must be an array' }] },
  patch_not_applicable: { errors: [{ pointer: '/0', message: 'its target does not exist' }] },
  invalid_body: { errors: [{ pointer: '/title', message: 'must be a string' }] },
};

function toExample(code: ErrorCode): { readonly value: unknown } {
  const error = new AppError(code, sentences[code], factsOf[code]);
  return { value: JSON.parse(toProblemText(error).text) };
}

const headersOfStatus: Readonly<Record<number, readonly (keyof typeof headerMeanings)[]>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  415: ['Accept', 'Accept-Patch'],
  416: ['Content-Range'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

/** The component of one status, or of any other. */
function toProblemResponse(status: number | undefined): readonly [string, Schema] {
  const all = Object.keys(httpStatusOf) as ErrorCode[]; // its keys are the codes
  const codes = all.filter((each) => httpStatusOf[each] === status || status === undefined);
  const schema = {
    allOf: [
      { $ref: '#/components/schemas/Problem' },
      { properties: { code: { type: 'string', enum: codes } } },
    ],
  };
  const shown = status === undefined ? (['internal_error'] as const) : codes;
  const examples = Object.fromEntries(shown.map((each) => [each, toExample(each)]));
  const response = {
    description: status === undefined ? 'Any other error.' : codes.join(', '),
    headers: toHeaders(headersOfStatus[status ?? 0] ?? []),
    content: { 'application/problem+json': { schema, examples } },
  };
  return [`Problem${status ?? ''}`, response];
}

/** The component of each status, and of any other. */
export const problemResponses: Schema = Object.fromEntries(
  [undefined, ...new Set(Object.values(httpStatusOf))].map(toProblemResponse),
);

/** Every answer has an id of its request beside these. */
export function toHeaders(names: readonly (keyof typeof headerMeanings)[]): Schema {
  return Object.fromEntries(
    [...names, 'X-Request-Id'].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
}
