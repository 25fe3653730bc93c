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

const factsOf: Readonly<Partial<Record<ErrorCode, ErrorFacts>>> = {
  invalid_parameter: { parameter: 'limit' },
  invalid_patch: { errors: [{ pointer: '', message: 'must be an array' }] },
  patch_not_applicable: { errors: [{ pointer: '/0', message: 'its target does not exist' }] },
  invalid_body: { errors: [{ pointer: '/title', message: 'must be a string' }] },
};

/** The sentence of a response depends on its request; that of an example repeats the code. */
function toExample(code: ErrorCode): { readonly value: unknown } {
  const sentence = `The request failed: ${code.replaceAll('_', ' ')}.`;
  const error = new AppError(code, sentence, factsOf[code]);
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
