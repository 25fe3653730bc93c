/** A request's body: read whole within a limit, or handed on as a stream. */

import type { IncomingMessage } from 'node:http';
import { AppError } from '../errors.ts';
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
    if (incoming.destroyed) {
      body.cut();
      return;
    }
    // What came meanwhile is in the stream.
    const early = incoming.readableLength > 0 ? (incoming.read() as Buffer) : noBytes;
    if (!body.take(early)) return;
    if (incoming.complete) body.end();
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
  #first: Buffer = noBytes;
  #more: Buffer[] | undefined;
  #length = 0;

  constructor(bytesMax: number, settle: Settle) {
    this.#bytesMax = bytesMax;
    this.#settle = settle;
  }

  take(piece: Buffer): boolean {
    this.#length += piece.length;
    if (this.#length > this.#bytesMax) {
      this.#settle.reject(tooLarge(this.#bytesMax));
      return false;
    }
    if (this.#first.length === 0) this.#first = piece;
    else (this.#more ??= [this.#first]).push(piece);
    return true;
  }

  end(): void {
    this.#settle.resolve(this.#more ? Buffer.concat(this.#more, this.#length) : this.#first);
  }

  cut(): void {
    this.#settle.reject(new ClientGone('The request ended early.'));
  }
}

const noBytes = Buffer.alloc(0);

function tooLarge(bytesMax: number): AppError {
  return new AppError('content_too_large', `The body has more than ${bytesMax} bytes.`);
}
