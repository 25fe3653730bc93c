/** A request's body: read whole within a limit, or handed on as a stream. */

import type { IncomingMessage } from 'node:http';
import { AppError } from '../errors.ts';

/** True where the message says that a body follows (RFC 9112 §6.3). */
export function hasBody(incoming: IncomingMessage): boolean {
  const { headers } = incoming;
  if (headers['transfer-encoding'] !== undefined) return true;
  return headers['content-length'] !== undefined && headers['content-length'] !== '0';
}

/** The length that the message declares; 0 for a chunked one. */
export function declaredLength(incoming: IncomingMessage): number {
  return Number(incoming.headers['content-length'] ?? 0);
}

/** The client went away before its request was whole, or reads no answer: nobody is left. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/**
 * The whole body. A declared length over `bytesMax` is refused before a byte is read, a longer
 * chunked one as soon as it is too long: `content_too_large`. Rejects with ClientGone where the
 * body ends early.
 */
export function readBody(incoming: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (declaredLength(incoming) > bytesMax) {
      reject(tooLarge(bytesMax));
      return;
    }
    const gone = (): void => reject(new ClientGone('The request ended early.'));
    // Whoever asked a database first may find that its client has left: no event says so again.
    if (incoming.destroyed) {
      gone();
      return;
    }
    let first: Buffer | undefined;
    let more: Buffer[] | undefined;
    let length = 0;
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > bytesMax) {
        incoming.removeAllListeners('data');
        incoming.pause();
        reject(tooLarge(bytesMax));
      } else if (first === undefined) first = chunk;
      else (more ??= [first]).push(chunk);
    });
    incoming.on('end', () => {
      // `close` comes after every body, also a whole one: an Error made there costs its stack.
      incoming.off('close', gone);
      resolve(more ? Buffer.concat(more, length) : (first ?? noBytes));
    });
    incoming.on('error', gone);
    incoming.on('close', gone);
  });
}

const noBytes = Buffer.alloc(0);

function tooLarge(bytesMax: number): AppError {
  return new AppError('content_too_large', `The body has more than ${bytesMax} bytes.`);
}
