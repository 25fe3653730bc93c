/** GraphQL over HTTP, the answer: media type, status and body (R25). */

import { type AppError, httpStatusOf } from '../../errors.ts';
import type { Answer } from '../../http/answer-cache.ts';
import { negotiate } from '../../http/media-type.ts';
import type { HttpReply } from '../../http/message.ts';
import type { GraphqlResult } from '../result.ts';
import { type GraphqlCode, toRefusal } from '../errors.ts';

const legacy = 'application/json';
const modern = 'application/graphql-response+json';

/** The media types of an answer. Under the older one a status says nothing of the operation. */
export type AnswerType = typeof legacy | typeof modern;

/** `audited`: what the public audits ask for; `2026-08`: the newer draft's statuses. */
export type HttpDraft = 'audited' | '2026-08';

const headersOf: Readonly<Record<AnswerType, readonly string[]>> = {
  [legacy]: ['Content-Type', `${legacy}; charset=utf-8`],
  [modern]: ['Content-Type', `${modern}; charset=utf-8`],
};

/** The type that the client likes best; undefined where it takes neither. */
export function negotiateAnswer(accept: string | undefined): AnswerType | undefined {
  if (accept === undefined || accept === '*/*' || accept === legacy) return legacy;
  // Who names the newer type, as good as the older one, knows what it says.
  if (accept.includes(modern)) return negotiate(accept, [modern, legacy]);
  return negotiate(accept, [legacy, modern]);
}

export function answerReply(answer: Answer, type: AnswerType, status: number): HttpReply {
  return { status, headers: headersOf[type], body: answer };
}

/** What is no request, or must not run this way, is refused with its status under either type. */
export function refusalReply(error: AppError, type: AnswerType): HttpReply {
  const { allow, retryAfterSeconds } = error.facts;
  const headers = [...headersOf[type]];
  if (allow !== undefined) headers.push('Allow', allow);
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds));
  const result: GraphqlResult = { errors: [toRefusal(error)] };
  return { status: httpStatusOf[error.code], headers, body: JSON.stringify(result) };
}

/** Why an operation did not run → status. */
const statusOfCode: Readonly<Partial<Record<GraphqlCode, number>>> = {
  PAYLOAD_TOO_LARGE: 413,
  PERSISTED_QUERY_NOT_FOUND: 404,
  INTERNAL_SERVER_ERROR: 500,
};

/** The status of a result. Under the older type it says nothing of the operation. */
export function statusOf(result: GraphqlResult, type: AnswerType, draft: HttpDraft): number {
  if (type === legacy) return 200;
  const { data, errors } = result;
  const isNew = draft === '2026-08';
  if (data !== undefined) return isNew && errors !== undefined ? 294 : 200;
  const code = errors?.[0]?.extensions.code ?? 'INTERNAL_SERVER_ERROR';
  return statusOfCode[code] ?? (isNew && code !== 'GRAPHQL_PARSE_FAILED' ? 422 : 400);
}
