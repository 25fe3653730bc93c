/** A request's body: read whole within a limit, or handed on as a stream. */

import type { IncomingMessage } from 'node:http';
import { AppError } from '../errors.ts';
import { uncountedBytesMax } from '../memory-pool.ts';
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

/** Takes so many bytes of memory for a body. Throws `overloaded` where there is no room. */
export type TakeRoom = (bytes: number) => void;

/** What the values of a JSON text can take beside it, as a multiple of its bytes. */
const parsedBytesPerByte = 8;

/**
 * The whole body. A declared length over `bytesMax` is refused before a byte is read, a longer
 * chunked one as soon as it is too long: `content_too_large`. `takeRoom` is asked before a large
 * body is held; what it throws is passed on. Rejects with ClientGone where the body ends early.
 */
export function readBody(
  incoming: Incoming,
  bytesMax: number,
  takeRoom: TakeRoom,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (declaredLength(incoming) > bytesMax) {
      reject(tooLarge(bytesMax));
      return;
    }
    const body = new WholeBody({ bytesMax, takeRoom, resolve, reject });
    // Whoever asked a database first may find that its client has left: no event says so again.
    if (incoming.destroyed) body.cut();
    else incoming.pour(body);
  });
}

interface BodyOptions {
  readonly bytesMax: number;
  readonly takeRoom: TakeRoom;
  readonly resolve: (body: Buffer) => void;
  readonly reject: (error: Error) => void;
}

class WholeBody implements BodySink {
  readonly #options: BodyOptions;
  readonly #bytes = new GatheredBytes();
  #roomTaken = 0;

  constructor(options: BodyOptions) {
    this.#options = options;
  }

  take(piece: Buffer): boolean {
    const { bytesMax, reject } = this.#options;
    try {
      if (this.#bytes.length + piece.length > bytesMax) throw tooLarge(bytesMax);
      this.#bytes.add(piece);
      this.#takeRoom(this.#bytes.capacity);
      return true;
    } catch (error) {
      reject(error as Error); // the two above throw AppErrors
      return false;
    }
  }

  end(): void {
    const { resolve, reject } = this.#options;
    try {
      this.#takeRoom(this.#bytes.length * (1 + parsedBytesPerByte));
      resolve(this.#bytes.take());
    } catch (error) {
      reject(error as Error); // an AppError
    }
  }

  cut(): void {
    this.#options.reject(new ClientGone('The request ended early.'));
  }

  #takeRoom(bytes: number): void {
    if (this.#bytes.length <= uncountedBytesMax || bytes <= this.#roomTaken) return;
    this.#options.takeRoom(bytes - this.#roomTaken);
    this.#roomTaken = bytes;
  }
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('content_too_large', `The body has more than ${bytesMax} bytes.`);
}
