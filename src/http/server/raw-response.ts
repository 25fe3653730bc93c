/**
 * An answer to a socket without a ServerResponse: a refused upgrade, or bytes that are no request.
 */

import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AppError } from '../../errors.ts';
import { toProblemText } from '../problem.ts';

/** How long the other side may take to read the answer. */
const lingerMilliseconds = 1_000;

/**
 * Writes the error as a whole HTTP answer, then ends the connection. Gives back the status, and how
 * many bytes of content it has.
 */
export function refuse(
  socket: Duplex,
  error: AppError,
  requestId?: string,
): { readonly status: number; readonly bytes: number } {
  const { status, headers, text } = toProblemText(error);
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`];
  if (requestId !== undefined) lines.push(`X-Request-Id: ${requestId}`);
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  const bytes = Buffer.byteLength(text);
  lines.push('X-Content-Type-Options: nosniff', `Content-Length: ${bytes}`);
  if (error.facts.close !== true) lines.push('Connection: close');
  socket.write(`${lines.join('\r\n')}\r\n\r\n${text}`);
  endGently(socket);
  return { status, bytes };
}

/**
 * Sends what is still to be written, and ends. What still comes is read and dropped for a moment:
 * a socket closed over unread bytes is reset, and the reset could overtake the answer.
 */
export function endGently(socket: Duplex): void {
  socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), lingerMilliseconds);
  socket.once('close', () => clearTimeout(timer));
}
