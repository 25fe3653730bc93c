/** The errors of the API reference: their shape, and an example of each code. */

import { AppError, type ErrorCode, type ErrorFacts, httpStatusOf } from '../../errors.ts';
import { toProblemResponse as toResponse } from '../../http/problem.ts';
import type { headerMeanings } from './operations.ts';
import { refer, type Schema } from './schemas.ts';

const problem: Schema = {
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

/** An example of the sentence for each code; some codes have several sentences. */
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
  not_acceptable: 'The response is application/json and nothing else.',
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
  return { value: JSON.parse(toResponse(error).body) };
}

const all = Object.keys(httpStatusOf) as readonly ErrorCode[]; // its keys are the codes

export const problemExamples: Schema = Object.fromEntries(
  all.map((code) => [code, toExample(code)]),
);

/** `Problem`, and a schema for each status, which lists its codes. */
export const problemSchemas: Readonly<Record<string, Schema>> = {
  Problem: problem,
  ...Object.fromEntries(
    Array.from(new Set(Object.values(httpStatusOf)), (status) => {
      const codes = all.filter((code) => httpStatusOf[code] === status);
      const code = { type: 'string', enum: codes };
      return [`Problem${status}`, { allOf: [refer('Problem'), { properties: { code } }] }];
    }),
  ),
};

const headersOfStatus: Readonly<Record<number, readonly (keyof typeof headerMeanings)[]>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  416: ['Content-Range'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

/** The error response of an operation with this status, limited to the given codes. */
export function toProblemResponse(
  status: number | '',
  codes: readonly ErrorCode[],
  method = '',
): Schema {
  const accepted = method === 'PATCH' ? 'Accept-Patch' : 'Accept';
  const headers = status === 415 ? ([accepted] as const) : headersOfStatus[Number(status)];
  const examples = codes.map((code) => [code, { $ref: `#/components/examples/${code}` }] as const);
  const content = { schema: refer(`Problem${status}`), examples: Object.fromEntries(examples) };
  return {
    description: status === '' ? 'Any other error.' : codes.join(', '),
    headers: toHeaders(headers ?? []),
    content: { 'application/problem+json': content },
  };
}

/** Every response also has the header with the request's id. */
export function toHeaders(names: readonly (keyof typeof headerMeanings)[]): Schema {
  return Object.fromEntries(
    [...names, 'X-Request-Id'].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
}
