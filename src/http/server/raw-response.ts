/** Responses without a ServerResponse: to a refused upgrade, or to bytes that are not a request. */

import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AppError } from '../../errors.ts';
import { toProblemResponse } from '../problem.ts';

/** How long the client may take to read the response. */
const lingerMilliseconds = 1_000;

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

/**
 * Writes what is queued, and ends. Further input is read and discarded for a moment: closing a
 * socket with unread input resets it, and the reset could overtake the response.
 */
export function endGently(socket: Duplex): void {
  socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), lingerMilliseconds);
  socket.once('close', () => clearTimeout(timer));
}
