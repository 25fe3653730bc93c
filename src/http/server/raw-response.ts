/** Responses without a ServerResponse: to a refused upgrade, or to bytes that are not a request. */

import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AppError } from '../../errors.ts';
import { toProblemResponse } from '../problem.ts';
import { endGently } from './linger.ts';

/**
 * Writes the error as a complete HTTP response, then ends the connection. Returns its status
 * and the bytes of its content.
 */
export function endWithProblem(
  socket: Duplex,
  error: AppError,
  requestId?: string,
): { readonly status: number; readonly bytes: number; readonly error: AppError } {
  const { status, headers, body } = toProblemResponse(error);
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`];
  if (requestId !== undefined) lines.push(`X-Request-Id: ${requestId}`);
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  const bytes = Buffer.byteLength(body);
  lines.push('X-Content-Type-Options: nosniff', `Content-Length: ${bytes}`);
  if (error.facts.close !== true) lines.push('Connection: close');
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  endGently(socket);
  return { status, bytes, error };
}
