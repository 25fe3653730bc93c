/** GraphQL over HTTP, the request: JSON or a query string → a typed request (R25). */

import { AppError } from '../../errors.ts';
import { isObject, parseJsonText } from '../../http/json.ts';
import type { GraphqlRequest } from '../engine.ts';

/** The members of a request that are read; the rest is ignored. */
const members = ['query', 'operationName', 'variables', 'extensions'] as const;

/** A request out of parsed JSON. Throws `invalid_graphql_request`. */
export function decodeRequest(body: unknown): GraphqlRequest {
  if (!isObject(body)) throw invalidRequest('A GraphQL request is a JSON object.');
  const { query, operationName, variables, extensions } = body;
  if (!isTextOrAbsent(query)) throw invalidRequest('The query must be a string.');
  if (!isTextOrAbsent(operationName)) throw invalidRequest('The operationName must be a string.');
  if (!isObjectOrAbsent(variables)) throw invalidRequest('The variables must be an object.');
  if (!isObjectOrAbsent(extensions)) throw invalidRequest('The extensions must be an object.');
  if (query == null && extensions?.['persistedQuery'] === undefined) {
    throw invalidRequest('The request has no query.');
  }
  return {
    query: query ?? undefined,
    operationName: operationName ?? undefined,
    variables: variables ?? undefined,
    extensions: extensions ?? undefined,
  };
}

/** The query string of a GET as JSON would say it: variables and extensions are JSON texts. */
export function parseQueryString(query: string): Readonly<Record<string, unknown>> {
  const given = new URLSearchParams(query);
  const body: Record<string, unknown> = {};
  for (const name of members) {
    const values = given.getAll(name);
    if (values.length > 1) throw invalidRequest(`The parameter ${name} was given twice.`);
    const [value] = values;
    // An empty parameter is one that was left out: forms send it so.
    if (value === undefined || value === '') continue;
    const isJson = name === 'variables' || name === 'extensions';
    body[name] = isJson ? parseJsonText(value) : value;
  }
  return body;
}

function isObjectOrAbsent(
  value: unknown,
): value is Readonly<Record<string, unknown>> | null | undefined {
  return value == null || isObject(value);
}

function isTextOrAbsent(value: unknown): value is string | null | undefined {
  return value == null || typeof value === 'string';
}

/** For what is not a GraphQL request. */
export function invalidRequest(message: string): AppError {
  return new AppError('invalid_graphql_request', message);
}
