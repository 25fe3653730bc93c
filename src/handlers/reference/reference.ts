/** The API reference: OpenAPI 3.1, made from the table of routes and `operations.ts`. */

import { type ErrorCode, httpStatusOf } from '../../errors.ts';
import type { Endpoint } from '../../http/message.ts';
import type { RouteOf } from '../../router.ts';
import {
  type OperationResponse,
  type Content,
  headerMeanings,
  type Operation,
  operations,
} from './operations.ts';
import { problemExamples, problemSchemas, toHeaders, toProblemResponse } from './problems.ts';
import { exampleOf, type Schema, schemas, text } from './schemas.ts';

const description = `Blog posts, comments, accounts, files, todos and articles. Every error is a
problem (RFC 9457) whose \`code\` is stable. HEAD answers as GET without a body, OPTIONS with
\`Allow\`. GraphQL is at \`/graphql\`, with a schema of its own.`.replaceAll('\n', ' ');

/** Returns the OpenAPI document of the routes that have an entry in `operations.ts`. */
export function describeApi(routes: readonly RouteOf<Endpoint>[]): Schema {
  const paths: Record<string, Record<string, Schema>> = {};
  for (const route of routes) {
    const operation = operations[`${route.method} ${route.path}`];
    if (operation === undefined) continue;
    (paths[route.path] ??= {})[route.method.toLowerCase()] = toOperation(route, operation);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Inkwell', version: '0.1.0', description },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: { ...schemas, ...problemSchemas },
      examples: problemExamples,
      responses: { Problem: toProblemResponse('', ['internal_error']) },
      headers: mapValues(headerMeanings, (meaning) => ({
        description: meaning,
        schema: { type: 'string' },
      })),
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
}

function toOperation(route: RouteOf<Endpoint>, operation: Operation): Schema {
  const { method, path } = route;
  const { summary, body } = operation;
  const headers = { ...operation.headers, ...(operation.isTagged && conditions) };
  const words = `${method.toLowerCase()}${path}`.split(/[^a-z]+/i).filter((word) => word !== '');
  const parameters = [
    ...Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => toParameter(path, name)),
    ...(operation.isPaged ? pages : []),
    ...Object.entries(headers).map(([name, example]) => {
      return { name, in: 'header', schema: { type: 'string' }, example };
    }),
  ];
  const isOpen = operation.token === 'never' || (method === 'GET' && operation.token !== 'always');
  const bearer = { bearer: [] };
  return {
    operationId: words.map((word, at) => (at === 0 ? word : capitalize(word))).join(''),
    summary,
    tags: [words[1] === 'api' ? words[2] : words[1]],
    ...(parameters.length > 0 && { parameters }),
    ...(!isOpen && { security: operation.token === 'always' ? [bearer] : [{}, bearer] }),
    ...(body && { requestBody: { required: true, content: mapValues(body, withExample) } }),
    responses: {
      ...toErrors(method, [
        ...impliedErrors(route, operation, isOpen),
        ...(operation.errors ?? []),
      ]),
      ...mapValues(toResponses(method, operation), toResponse),
      default: { $ref: '#/components/responses/Problem' },
    },
  };
}

const pages: readonly Schema[] = [
  {
    name: 'limit',
    in: 'query',
    description: 'Records of a page; without it, all follow.',
    schema: { type: 'integer', minimum: 1, maximum: 1000 },
  },
  {
    name: 'after',
    in: 'query',
    description: 'The id of the record before the page.',
    schema: { type: ['string', 'integer'] },
  },
];

const conditions = { 'If-Match': '"…"', 'If-None-Match': '"…"' };

/** Adds 304 to the responses of a resource with an entity tag (RFC 9110 §13). */
function toResponses(method: string, operation: Operation): Operation['responses'] {
  const { responses, isTagged, isPaged } = operation;
  if (isTagged !== true || method !== 'GET') return responses;
  const known = { 304: { about: 'The client has it.' }, ...responses };
  return mapValues(known, (response: OperationResponse): OperationResponse => {
    const headers = [...(response.headers ?? []), 'ETag'] as const;
    return { ...response, headers: isPaged && response.schema ? [...headers, 'Link'] : headers };
  });
}

/** The errors that follow from what a route accepts and returns. */
function impliedErrors(
  { method, path, endpoint }: RouteOf<Endpoint>,
  { body = {}, isTagged, isPaged }: Operation,
  isOpen: boolean,
): readonly ErrorCode[] {
  const codes: ErrorCode[] = [];
  const types = Object.keys(body);
  if (!isOpen) codes.push('missing_token', 'invalid_token');
  if (path.includes('{')) codes.push('not_found');
  if (isTagged === true) codes.push('precondition_failed');
  if (isPaged === true) codes.push('invalid_parameter');
  if (endpoint.produces !== undefined) codes.push('not_acceptable');
  if (types.length > 0) codes.push('unsupported_media_type', 'content_too_large');
  if (types.includes('multipart/form-data')) {
    codes.push('foreign_origin', 'invalid_multipart', 'storage_full');
  } else if (types.length > 0) codes.push('invalid_json', 'invalid_body');
  if (method === 'PATCH') codes.push('invalid_patch', 'patch_not_applicable');
  return codes;
}

/** The responses of an operation's errors, by status, each with its codes. */
function toErrors(method: string, codes: readonly ErrorCode[]): Readonly<Record<string, Schema>> {
  const statuses = new Set(codes.map((code) => httpStatusOf[code]));
  return Object.fromEntries(
    Array.from(statuses, (status) => {
      const own = codes.filter((code) => httpStatusOf[code] === status);
      return [String(status), toProblemResponse(status, own, method)];
    }),
  );
}

function toResponse(response: OperationResponse): Schema {
  const { about, type = 'application/json', headers = [], location, schema, example } = response;
  return {
    description: about,
    headers: {
      ...(location !== undefined && {
        Location: { description: headerMeanings.Location, schema: text, example: location },
      }),
      ...toHeaders(headers),
    },
    ...(schema && { content: { [type]: withExample({ schema, example }) } }),
  };
}

function withExample({ schema, example = exampleOf(schema) }: Content): Content {
  return { schema, example };
}

function toParameter(path: string, name: string): Schema {
  const isNumber = path.includes('articles');
  const schema = isNumber
    ? { type: 'integer', minimum: 1 }
    : { type: 'string', ...(name === 'id' && { format: 'uuid' }) };
  const parameter = { name, in: 'path', required: true, schema };
  if (name !== 'name') return parameter;
  return { ...parameter, description: 'Not `simple` or `list`: these are among all files only.' };
}

function capitalize(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function mapValues<V, R>(
  values: Readonly<Record<string, V>>,
  change: (value: V) => R,
): Readonly<Record<string, R>> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));
}
