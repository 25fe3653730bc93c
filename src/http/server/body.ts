/** A request's body: read whole within a limit, or handed on as a stream. */

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { AppError } from '../../errors.ts';
import { uncountedBytesMax } from '../../memory-pool.ts';
import { GatheredBytes } from './gathered-bytes.ts';

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

/** What is taken of a body that nobody reads yet. */
const aheadBytesMax = 16_384;

interface Reader {
  readonly bytesMax: number;
  readonly takeRoom: TakeRoom;
  readonly resolve: (body: Buffer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A body on its way. It is gathered from the start, also while its request waits: Node would keep
 * each piece as an object, and a client can send each byte by itself.
 */
export class RequestBody {
  readonly #incoming: IncomingMessage;
  readonly #bytes = new GatheredBytes();
  #reader: Reader | undefined;
  #stream: BodyStream | undefined;
  #state: 'coming' | 'whole' | 'cut' = 'coming';
  #roomTaken = 0;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
    incoming.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose);
  }

  /**
   * The whole body. A declared length over `bytesMax` is refused before more of it is read, a
   * longer chunked one as soon as it is too long: `content_too_large`. `takeRoom` is asked before a
   * large body is held; what it throws is passed on. Rejects with ClientGone where the body ends
   * early.
   */
  read(bytesMax: number, takeRoom: TakeRoom): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (declaredLength(this.#incoming) > bytesMax) throw tooLarge(bytesMax);
      this.#reader = { bytesMax, takeRoom, resolve, reject };
      this.#advance(this.#reader);
      if (this.#state === 'coming') this.#incoming.socket.resume();
    });
  }

  /** The body as a stream, for a reader that must not hold it in memory. */
  stream(): Readable {
    this.leave();
    const early = this.#bytes.take();
    if (this.#state === 'whole') return Readable.from([early], { objectMode: false });
    if (this.#state === 'cut') return this.#incoming;
    return (this.#stream = new BodyStream(this.#incoming, early));
  }

  /** What follows is another reader's; without one it is thrown away. */
  leave(): void {
    this.#incoming.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose);
    this.#stream?.leave();
    if (this.#state === 'coming') this.#incoming.socket.resume();
  }

  readonly #onData = (piece: Buffer): void => {
    this.#bytes.add(piece);
    if (this.#reader !== undefined) this.#advance(this.#reader);
    else if (this.#bytes.length > aheadBytesMax) this.#incoming.socket.pause();
  };

  readonly #onEnd = (): void => {
    this.#state = 'whole';
    if (this.#reader !== undefined) this.#advance(this.#reader);
  };

  readonly #onClose = (): void => {
    if (this.#state === 'coming') this.#state = 'cut';
    if (this.#reader !== undefined) this.#advance(this.#reader);
  };

  /** Settling twice does nothing. */
  #advance({ bytesMax, takeRoom, resolve, reject }: Reader): void {
    const { length, capacity } = this.#bytes;
    try {
      if (length > bytesMax) throw tooLarge(bytesMax);
      if (this.#state === 'cut') throw new ClientGone('The request ended early.');
      const isWhole = this.#state === 'whole';
      this.#takeRoom(isWhole ? length * (1 + parsedBytesPerByte) : capacity, takeRoom);
      if (isWhole) resolve(this.#bytes.take());
    } catch (error) {
      this.leave();
      reject(error);
    }
  }

  #takeRoom(bytes: number, takeRoom: TakeRoom): void {
    if (this.#bytes.length <= uncountedBytesMax || bytes <= this.#roomTaken) return;
    takeRoom(bytes - this.#roomTaken);
    this.#roomTaken = bytes;
  }
}

/** Pieces below this are copied together until the packets of this iteration are read. */
const smallPieceBytes = 1_024;

/** A body with the back-pressure of its reader, which a client that sends tiny pieces pays for. */
class BodyStream extends Readable {
  readonly #incoming: IncomingMessage;
  readonly #small = new GatheredBytes();

  constructor(incoming: IncomingMessage, early: Buffer) {
    super();
    this.#incoming = incoming;
    incoming.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose);
    this.#give(early);
  }

  leave(): void {
    this.#incoming.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose);
  }

  override _read(): void {
    // Behind a whole body another request may wait: then reading stays stopped.
    if (!this.#incoming.complete) this.#incoming.socket.resume();
  }

  readonly #onData = (piece: Buffer): void => {
    if (piece.length >= smallPieceBytes) {
      this.#flush();
      this.#give(piece);
      return;
    }
    if (this.#small.length === 0) setImmediate(() => this.#flush());
    this.#small.add(piece);
  };

  readonly #onEnd = (): void => {
    this.#flush();
    this.push(null);
  };

  readonly #onClose = (): void => {
    // Without an error: the reader may have left, and one that nobody handles ends the process.
    if (!this.#incoming.complete) this.destroy();
  };

  #flush(): void {
    this.#give(this.#small.take());
  }

  /** The rest of the packet comes all the same, and is gathered; the next one waits. */
  #give(bytes: Buffer): void {
    if (bytes.length === 0 || this.destroyed || this.readableEnded) return;
    if (!this.push(bytes) && !this.#incoming.complete) this.#incoming.socket.pause();
  }
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('content_too_large', `The body has more than ${bytesMax} bytes.`);
}
