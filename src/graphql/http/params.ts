/**
 * GraphQL requests: decodes JSON or a query string (R25). What was parsed is dropped: a request
 * that waits keeps its texts and at most `variableValuesMax` values.
 */

import { AppError } from '../../errors.ts';
import { isObject, parseJsonText } from '../../http/json.ts';
import { UploadedFile } from '../schema/uploaded-file.ts';
import type { GraphqlRequest } from '../engine.ts';

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
  return body.map((item) => {
    try {
      return decodeRequest(item);
    } catch (error) {
      if (error instanceof AppError) return error;
      throw error;
    }
  });
}

/** Decodes a request from parsed JSON. Throws `invalid_graphql_request`. */
export function decodeRequest(body: unknown): GraphqlRequest {
  if (!isObject(body)) throw invalidRequest('A GraphQL request is a JSON object.');
  const query = readText(body, 'query');
  const documentHash = readHash(readObject(body, 'extensions')?.['persistedQuery']);
  if (query === undefined && documentHash === undefined) {
    throw invalidRequest('The request has no query.');
  }
  const operationName = readText(body, 'operationName');
  const variables = readObject(body, 'variables');
  // Refused when it runs, so that on a socket or in a batch it is the error of one operation.
  if (countValues(variables, variableValuesMax) > variableValuesMax) {
    return { query, documentHash, operationName, hasTooManyVariables: true };
  }
  return { query, documentHash, operationName, variables };
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
  throw invalidRequest(`The ${name} must be an object.`);
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

/** Decodes the query string of a GET; `variables` and `extensions` are JSON texts. */
export function parseQueryString(query: string): GraphqlRequest {
  const given = new URLSearchParams(query);
  const body: Record<string, unknown> = {};
  for (const name of ['query', 'operationName', 'variables', 'extensions']) {
    const [value = '', second] = given.getAll(name);
    if (second !== undefined) throw invalidRequest(`The parameter ${name} was given twice.`);
    // An empty parameter counts as absent: forms send empty fields.
    if (value === '') continue;
    body[name] = name === 'variables' || name === 'extensions' ? parseJsonText(value) : value;
  }
  return decodeRequest(body);
}

/** The error for an invalid GraphQL request. */
export function invalidRequest(message: string): AppError {
  return new AppError('invalid_graphql_request', message);
}
