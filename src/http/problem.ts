/** Errors → responses: `application/problem+json` (RFC 9457) with the members of R5. */

import { STATUS_CODES } from 'node:http';
import { AppError, type ErrorCode, httpStatusOf, toStack } from '../errors.ts';
import type { Log } from '../log.ts';
import type { HttpResponse } from './message.ts';

/**
 * An AppError is reported as it is. Any other error is a fault of the service: it is masked, and
 * logged once with the request id, by which the two can be matched.
 */
export function toProblem(error: unknown, requestId: string, log: Log): HttpResponse {
  if (error instanceof AppError) return toProblemResponse(error);
  log('error', 'request failed', { requestId, reason: toStack(error) });
  return toProblemResponse(
    new AppError('internal_error', `The server failed; its log says more under ${requestId}.`),
  );
}

export function toProblemResponse(error: AppError): HttpResponse & { readonly body: string } {
  const { code, message, facts } = error;
  const status = httpStatusOf[code];
  const title = STATUS_CODES[status] ?? '';
  const body = {
    title,
    status,
    code,
    error: message,
    errors: facts.errors,
    parameter: facts.parameter,
  };
  const headers = toErrorHeaders(error, 'application/problem+json');
  return { status, headers, body: JSON.stringify(body), error };
}

/** RFC 6750 §3.1. */
const bearerErrors: ReadonlyMap<ErrorCode, string> = new Map([
  ['invalid_token', 'invalid_token'],
  ['forbidden', 'insufficient_scope'],
]);

/** The headers of a response with an error, whatever the format of its body. */
export function toErrorHeaders({ code, facts }: AppError, contentType: string): string[] {
  const headers = ['Content-Type', contentType, 'Cache-Control', 'no-store'];
  headers.push(...(facts.headers ?? []));
  if (facts.retryAfterSeconds !== undefined) {
    headers.push('Retry-After', String(facts.retryAfterSeconds));
  }
  if (httpStatusOf[code] === 401 || code === 'forbidden') {
    // RFC 6750 §3: the error is named only if a token was sent.
    const why = bearerErrors.get(code);
    const named = why === undefined ? '' : `, error="${why}"`;
    headers.push('WWW-Authenticate', `Bearer realm="inkwell"${named}`);
  }
  if (facts.close === true) headers.push('Connection', 'close');
  return headers;
}
