/** GraphQL over HTTP, requests: decodes JSON or a query string (R25). */

import { AppError } from '../../errors.ts';
import { isObject, parseJsonText } from '../../http/json.ts';
import type { GraphqlRequest } from '../engine.ts';

/** The members that are read; others are ignored. */
const kindOf = {
  query: 'a string',
  operationName: 'a string',
  variables: 'an object',
  extensions: 'an object',
} as const;

/** Decodes a request from parsed JSON. Throws `invalid_graphql_request`. */
export function decodeRequest(body: unknown): GraphqlRequest {
  if (!isObject(body)) throw invalidRequest('A GraphQL request is a JSON object.');
  const members = Object.entries(kindOf).filter(([name]) => body[name] != null);
  for (const [name, kind] of members) {
    const isRight = kind === 'a string' ? typeof body[name] === 'string' : isObject(body[name]);
    if (!isRight) throw invalidRequest(`The ${name} must be ${kind}.`);
  }
  // Each was checked above.
  const request: GraphqlRequest = Object.fromEntries(members.map(([name]) => [name, body[name]]));
  if (request.query === undefined && request.extensions?.['persistedQuery'] === undefined) {
    throw invalidRequest('The request has no query.');
  }
  return request;
}

/** Decodes the query string of a GET; `variables` and `extensions` are JSON texts. */
export function parseQueryString(query: string): Readonly<Record<string, unknown>> {
  const given = new URLSearchParams(query);
  const body: Record<string, unknown> = {};
  for (const [name, kind] of Object.entries(kindOf)) {
    const [value = '', second] = given.getAll(name);
    if (second !== undefined) throw invalidRequest(`The parameter ${name} was given twice.`);
    // An empty parameter counts as absent: forms send empty fields.
    if (value !== '') body[name] = kind === 'an object' ? parseJsonText(value) : value;
  }
  return body;
}

/** The error for an invalid GraphQL request. */
export function invalidRequest(message: string): AppError {
  return new AppError('invalid_graphql_request', message);
}
