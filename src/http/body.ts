/** A request's body: read whole within a limit, or handed on as a stream. */

import type { IncomingMessage } from 'node:http';
import { AppError } from '../errors.ts';
import { GatheredBytes } from './gathered-bytes.ts';
import type { BodySink, Incoming } from './incoming.ts';

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
export function readBody(incoming: Incoming, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (declaredLength(incoming) > bytesMax) {
      reject(tooLarge(bytesMax));
      return;
    }
    const body = new WholeBody(bytesMax, { resolve, reject });
    // Whoever asked a database first may find that its client has left: no event says so again.
    if (incoming.destroyed) body.cut();
    else incoming.pour(body);
  });
}

interface Settle {
  readonly resolve: (body: Buffer) => void;
  readonly reject: (error: Error) => void;
}

class WholeBody implements BodySink {
  readonly #bytesMax: number;
  readonly #settle: Settle;
  readonly #bytes = new GatheredBytes();

  constructor(bytesMax: number, settle: Settle) {
    this.#bytesMax = bytesMax;
    this.#settle = settle;
  }

  take(piece: Buffer): boolean {
    if (this.#bytes.length + piece.length > this.#bytesMax) {
      this.#settle.reject(tooLarge(this.#bytesMax));
      return false;
    }
    this.#bytes.add(piece);
    return true;
  }

  end(): void {
    this.#settle.resolve(this.#bytes.take());
  }

  cut(): void {
    this.#settle.reject(new ClientGone('The request ended early.'));
  }
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('content_too_large', `The body has more than ${bytesMax} bytes.`);
}
