/** GraphQL over HTTP, responses: media type, status and body (R25). */

import { type AppError, httpStatusOf } from '../../errors.ts';
import { negotiate } from '../../http/media-type.ts';
import type { HttpResponse } from '../../http/message.ts';
import { toErrorHeaders } from '../../http/problem.ts';
import type { GraphqlResult } from '../result.ts';
import { type GraphqlCode, toRefusal } from '../errors.ts';

const legacy = 'application/json';
const modern = 'application/graphql-response+json';

/** The media types of a response. With the older one the status of a result is always 200. */
export type ResponseType = typeof legacy | typeof modern;

const contentTypeOf: Readonly<Record<ResponseType, string>> = {
  [legacy]: `${legacy}; charset=utf-8`,
  [modern]: `${modern}; charset=utf-8`,
};

/** The type that the client prefers; undefined where it accepts neither. */
export function negotiateType(accept: string | undefined): ResponseType | undefined {
  if (accept === undefined || accept === '*/*' || accept === legacy) return legacy;
  // A client that lists the newer type supports it, so it is preferred at equal weight.
  if (accept.includes(modern)) return negotiate(accept, [modern, legacy]);
  return negotiate(accept, [legacy, modern]);
}

/** `result` is absent for a batch, which has several results but one status. */
export function resultResponse(
  body: string,
  type: ResponseType,
  result?: GraphqlResult,
): HttpResponse {
  const status = result === undefined ? 200 : statusOf(result, type);
  const wait = status === 503 ? result?.errors?.[0]?.extensions.retryAfterSeconds : undefined;
  const retry = wait === undefined ? [] : ['Retry-After', String(wait)];
  return { status, headers: ['Content-Type', contentTypeOf[type], ...retry], body };
}

/** A refused request has the status of its error, with either media type. */
export function refusalResponse(error: AppError, type: ResponseType): HttpResponse {
  const headers = toErrorHeaders(error, contentTypeOf[type]);
  const result: GraphqlResult = { errors: [toRefusal(error)] };
  return { status: httpStatusOf[error.code], headers, body: JSON.stringify(result), error };
}

/** The status for the code of an operation that did not run. */
const statusOfCode: Readonly<Partial<Record<GraphqlCode, number>>> = {
  PAYLOAD_TOO_LARGE: 413,
  PERSISTED_QUERY_NOT_FOUND: 404,
  UNAVAILABLE: 503,
  STORAGE_FULL: 507,
  INTERNAL_SERVER_ERROR: 500,
};

/** The status of a result, as the public audits ask (R25); always 200 with the older type. */
function statusOf(result: GraphqlResult, type: ResponseType): number {
  if (type === legacy) return 200;
  const { data, errors } = result;
  if (data !== undefined) return 200;
  const code = errors?.[0]?.extensions.code ?? 'INTERNAL_SERVER_ERROR';
  return statusOfCode[code] ?? 400;
}
