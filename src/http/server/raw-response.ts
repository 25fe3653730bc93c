/** Responses without a ServerResponse: to a refused upgrade, or to bytes that are not a request. */

import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AppError } from '../../errors.ts';
import type { Cors } from '../origins.ts';
import { toProblemResponse } from '../problem.ts';
import { endGently } from './linger.ts';

interface RawHead {
  readonly requestId: string;
  readonly cors: Cors | undefined;
  /** `Origin` of the request, if it is known. */
  readonly origin: string | undefined;
}

/**
 * Writes the error as a complete HTTP response, then ends the connection. Returns its status
 * and the bytes of its content.
 */
export function endWithProblem(
  socket: Duplex,
  error: AppError,
  { requestId, cors, origin }: RawHead,
): { readonly status: number; readonly bytes: number; readonly error: AppError } {
  const { status, headers: own, body } = toProblemResponse(error);
  const bytes = Buffer.byteLength(body);
  const headers = ['X-Request-Id', requestId, 'X-Content-Type-Options', 'nosniff', ...own];
  // RFC 9110 §6.6.1: a response has the time at which it was made.
  headers.push('Date', new Date().toUTCString(), 'Content-Length', String(bytes));
  if (error.facts.close !== true) headers.push('Connection', 'close');
  cors?.addTo(headers, origin);
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`];
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  endGently(socket);
  return { status, bytes, error };
}
