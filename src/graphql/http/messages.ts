/**
 * GraphQL over HTTP: decodes requests from JSON or a query string, chooses the media type of the
 * response, and makes responses (R25). What was parsed is dropped: a request that waits keeps its
 * texts and at most `variableValuesMax` values.
 */

import { AppError, type GraphqlCode, httpStatusOf } from '../../errors.ts';
import { isObject, parseJson } from '../../http/json.ts';
import { negotiate } from '../../http/media-type.ts';
import type { HttpRequest, HttpResponse } from '../../http/message.ts';
import { toErrorHeaders } from '../../http/problem.ts';
import { parseQuery } from '../../http/query.ts';
import { type MadeResponse, toJsonBody } from '../../records/response-cache.ts';
import type { GraphqlRequest } from '../documents/documents.ts';
import { RequestError, toRefusal } from '../errors.ts';
import { withOwnKey } from '../once.ts';
import { UploadedFile } from '../schema/scalars.ts';

/** For the variables of an operation, nested values included: each is coerced and checked. */
const variableValuesMax = 1_000;

/** Operations of a batch (R26). They share one budget, whatever their number. */
const operationsMax = 20;

/** One request or a batch. An invalid request of a batch is an error in its own place. */
export type Requests = GraphqlRequest | readonly (GraphqlRequest | AppError)[];

/** Decodes a request or a batch from parsed JSON. Throws AppErrors. */
export function decodeBody(body: unknown): Requests {
  if (!Array.isArray(body)) return decodeRequest(body);
  if (body.length === 0) throw invalidRequest('A batch has at least one operation.');
  if (body.length > operationsMax) {
    throw new AppError('content_too_large', `A batch has at most ${operationsMax} operations.`);
  }
  return body.map(tryDecode);
}

/** Returns the error of a request that is not valid, for its own place. */
export function tryDecode(body: unknown): GraphqlRequest | AppError {
  try {
    return decodeRequest(body);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/** Decodes a request from parsed JSON. Throws `invalid_graphql_request`. */
export function decodeRequest(body: unknown): GraphqlRequest {
  if (!isObject(body)) throw invalidRequest('A GraphQL request is a JSON object.');
  const extensions = readObject(body, 'extensions');
  const documentHash = readDocumentHash(body, extensions);
  const text = readText(body, 'query');
  // With a hash an empty text is none: `graphql-ws` needs one.
  const query = text === '' && documentHash !== undefined ? undefined : text;
  if (query === undefined && documentHash === undefined) {
    throw invalidRequest('The request has no query.');
  }
  const operationName = readText(body, 'operationName') || undefined;
  const variables = readObject(body, 'variables');
  // Refused when it runs, so that on a socket or in a batch it is the error of one operation.
  if (variables !== undefined && countValues(variables, variableValuesMax) > variableValuesMax) {
    return { query, documentHash, operationName, hasTooManyVariables: true };
  }
  const request = { query, documentHash, operationName, variables };
  return extensions === undefined ? request : withOwnKey(request, extensions['idempotencyKey']);
}

function readText(body: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw invalidRequest(`The ${name} must be a string.`);
}

function readObject(
  body: Readonly<Record<string, unknown>>,
  name: string,
): Readonly<Record<string, unknown>> | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined || isObject(value)) return value;
  if (isEmpty(value)) return undefined;
  throw invalidRequest(`The ${name} must be an object.`);
}

/** What is empty is absent: PHP writes an empty map as a list. */
export function isEmpty(value: unknown): boolean {
  return value === '' || (Array.isArray(value) && value.length === 0);
}

/** The document by its hash, as persisted queries, GraphQL over HTTP and Relay name it. */
function readDocumentHash(
  body: Readonly<Record<string, unknown>>,
  extensions: Readonly<Record<string, unknown>> | undefined,
): string | undefined {
  const persistedQuery = extensions?.['persistedQuery'];
  const isAbsent = Boolean(body['query']) && isEmpty(persistedQuery ?? '');
  const hash = isAbsent ? undefined : readHash(persistedQuery);
  if (hash !== undefined) return hash;
  const id = readText(body, 'documentId') ?? readText(body, 'doc_id');
  return id?.toLowerCase().replace(/^sha256:/, '') || undefined;
}

/** Returns the hash of `{version: 1, sha256Hash}`; an empty text for any other value. */
function readHash(persistedQuery: unknown): string | undefined {
  if (persistedQuery === undefined) return undefined;
  if (!isObject(persistedQuery)) return '';
  const { version, sha256Hash } = persistedQuery;
  return version === 1 && typeof sha256Hash === 'string' ? sha256Hash.toLowerCase() : '';
}

/** Stops counting at one more than `max`. */
function countValues(value: unknown, max: number): number {
  let count = 1;
  if (typeof value !== 'object' || value === null || value instanceof UploadedFile) return count;
  for (const member of Object.values(value)) {
    count += countValues(member, max - count);
    if (count > max) break;
  }
  return count;
}

const queryParameters = [
  'query',
  'documentId',
  'doc_id',
  'operationName',
  'variables',
  'extensions',
];

/** Decodes the query string of a GET; `variables` and `extensions` are JSON texts. */
export function parseQueryString(query: string): GraphqlRequest {
  const parameters = parseQuery(query);
  const body: Record<string, unknown> = {};
  for (const name of queryParameters) {
    const [value = '', second] = parameters.getAll(name);
    if (second !== undefined) throw invalidRequest(`The parameter ${name} was given twice.`);
    // An empty parameter counts as absent: forms send empty fields.
    if (value === '') continue;
    body[name] = name === 'variables' || name === 'extensions' ? parseJson(value) : value;
  }
  return decodeRequest(body);
}

/** The error for an invalid GraphQL request. */
export function invalidRequest(message: string): AppError {
  return new AppError('invalid_graphql_request', message);
}

const legacy = 'application/json';
const modern = 'application/graphql-response+json';
const eventStream = 'text/event-stream';

/** The media types of a response. With the older one the status of a result is always 200. */
type ResponseType = typeof legacy | typeof modern;

type Accepting = Pick<HttpRequest, 'header'>;

/**
 * The type that the client prefers; undefined where it accepts neither: a POST is not refused for
 * that, and gets the older one (R6).
 */
export function negotiateType(request: Accepting): ResponseType | undefined {
  const accept = request.header('accept');
  // A client that lists the newer type supports it, so it is preferred at equal weight.
  return negotiate(accept, accept?.includes(modern) ? [modern, legacy] : [legacy, modern]);
}

/** True if the client prefers events to JSON. */
export function wantsEvents(request: Accepting): boolean {
  const accept = request.header('accept');
  if (accept === undefined || !accept.includes(eventStream)) return false;
  const positionOf = (type: string): number => {
    const at = accept.indexOf(type);
    return at === -1 ? accept.length : at;
  };
  // Of equal weights the type that is named first wins: urql names all that it can read.
  const types = [eventStream, legacy, modern].toSorted((a, b) => positionOf(a) - positionOf(b));
  return negotiate(accept, types) === eventStream;
}

/** True if a subscription may be answered with events: if the client names them (W3C SSE). */
export function takesEvents(request: Accepting): boolean {
  const accept = request.header('accept')?.toLowerCase() ?? '';
  if (!accept.includes(eventStream) && !accept.includes('text/*')) return false;
  return negotiate(accept, [eventStream]) !== undefined;
}

/** The status for the code of an operation that did not run (R25), as the public audits ask. */
const statusOfCode: Readonly<Partial<Record<GraphqlCode, number>>> = {
  PAYLOAD_TOO_LARGE: 413,
  PERSISTED_QUERY_NOT_FOUND: 404,
  TOO_MANY_REQUESTS: 429,
  UNAVAILABLE: 503,
  STORAGE_FULL: 507,
  INTERNAL_SERVER_ERROR: 500,
};

export function resultResponse(
  { json, isRepeatable = false }: { readonly json: string; readonly isRepeatable?: boolean },
  type: ResponseType = legacy,
): MadeResponse {
  const headers = ['Content-Type', `${type}; charset=utf-8`];
  return { status: 200, headers, body: toJsonBody(json), isUncacheable: !isRepeatable };
}

/**
 * The response to a request that is refused as a whole. An operation without data has the status of
 * its first error in the newer type only; any other AppError has its own, whatever the media type.
 * Throws all other errors.
 */
export function refusalResponse(error: unknown, type: ResponseType = legacy): HttpResponse {
  if (error instanceof RequestError) {
    const { errors } = error;
    const response = resultResponse({ json: JSON.stringify({ errors }) }, type);
    if (type === legacy) return response;
    const { code, retryAfterSeconds } = errors[0]?.extensions ?? {};
    const status = statusOfCode[code ?? 'INTERNAL_SERVER_ERROR'] ?? 400;
    if (retryAfterSeconds === undefined) return { ...response, status };
    const headers = [...response.headers, 'Retry-After', String(retryAfterSeconds)];
    return { ...response, status, headers };
  }
  if (!(error instanceof AppError)) throw error;
  const headers = toErrorHeaders(error, `${type}; charset=utf-8`);
  const body = JSON.stringify({ errors: [toRefusal(error)] });
  return { status: httpStatusOf[error.code], headers, body, error };
}
