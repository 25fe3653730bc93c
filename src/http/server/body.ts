/** The body of a request: read whole within a limit, or chunk by chunk. */

import type { IncomingMessage } from 'node:http';
import { AppError, overloaded } from '../../errors.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import { type ConnectionMemory, type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import type { Message } from './incoming.ts';

/** The client left before its request was complete, or does not read: no response is possible. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/**
 * The memory that a JSON body can take: its bytes, its text, and its values. These take up to 22
 * times their text, and 67 bytes each; `jsonValuesMax` limits their number.
 */
export function memoryOf(length: number): number {
  return 2 * length + Math.min(22 * length, parsedBytesMax);
}

const parsedBytesMax = 3 * 1024 * 1024;

/** Up to this size Node reads the rest of a body, so that the connection can be reused. */
const restBytesMax = 65_536;

/**
 * Each piece of a body costs as much as a hundred bytes of it, and a packet of 64 KiB can hold ten
 * thousand of one byte. More small ones than this in what is read at once end the connection: who
 * sends so many should send longer ones.
 */
const smallPiecesMax = 500;
const smallPieceBytes = 64;

const noBytes = Buffer.alloc(0);

/**
 * A body that is being received. It is copied together from the start, also while its request
 * waits: Node would keep each chunk as an object, and a client can send each byte separately.
 */
export class RequestBody {
  /** Memory beyond what counts as part of a connection. Released with the response. */
  reservation: Reservation | undefined;
  readonly #memory: ConnectionMemory;
  readonly #incoming: IncomingMessage;
  /** In bytes; not a number for a chunked body. */
  readonly #declaredLength: number;
  /** What has arrived is at its start. */
  #space: Buffer = noBytes;
  #length = 0;
  /** `unread`: `begin` is to be called, which a chunked body does not need. */
  state: 'unread' | 'coming' | 'whole' = 'unread';
  /** Why no more can be read. */
  #error: Error | undefined;
  /** Sends `100 Continue`, until it is sent. */
  #invite: (() => void) | undefined;
  /** Resumes the reader that waits for more. */
  #wake: (() => void) | undefined;
  /** Bytes that are received before a handler asks for them; any number while it reads all. */
  #aheadBytesMax = uncountedBytesMax;
  #isPaused = false;
  /** True if the connection was ended because the body came in too many pieces. */
  isInPieces = false;
  /** The small pieces of the last packet; and `bytesRead` of the socket, which tells it apart. */
  #smallPieces = 0;
  #packet = 0;

  constructor({ incoming, outgoing, expectation }: Message, memory: ConnectionMemory) {
    this.#memory = memory;
    this.#incoming = incoming;
    this.#declaredLength = Number(incoming.headers['content-length']);
    if (expectation === 'continue') this.#invite = () => outgoing.writeContinue();
    // At once: Node keeps each chunk as an object, and one packet can bring ten thousand.
    if (incoming.headers['transfer-encoding'] !== undefined) this.#listen();
  }

  /** True while a handler waits for bytes of the client. */
  get isAwaited(): boolean {
    return this.#wake !== undefined;
  }

  /** True while the socket is paused until somebody reads. */
  get isHeldBack(): boolean {
    return this.#isPaused && !this.#incoming.complete;
  }

  /** While it is incomplete: true if the rest is too long to be discarded, or was not asked for. */
  get isLeftUnread(): boolean {
    return this.#invite !== undefined || !(this.#declaredLength <= restBytesMax);
  }

  /**
   * Called when Node has read the packets of this iteration of the event loop. Most bodies arrive
   * in those of their heads, and are taken in one call: it is faster than the events of a stream.
   */
  begin(): void {
    const incoming = this.#incoming;
    if (incoming.socket.destroyed) return;
    if (!incoming.complete) {
      this.#listen();
      return;
    }
    const bytes = incoming.read() as Buffer | null;
    if (bytes !== null) this.#add(bytes);
    this.state = 'whole';
  }

  /**
   * Reads the whole body; returns a promise only if it is not whole yet. Fails with
   * `content_too_large` for a declared length over `bytesMax`, before more is read, and for a
   * chunked body as soon as it is longer; with `overloaded` if there is no memory for a large one;
   * with ClientGone if the body ends early.
   */
  read(bytesMax: number): MaybePromise<Buffer> {
    if (this.#declaredLength > bytesMax) throw tooLarge(bytesMax);
    return this.#takeWhole(bytesMax) ?? this.#readOn(bytesMax);
  }

  /** Returns what arrived since the last call; waits if nothing did. Empty at the end. */
  readChunk(): MaybePromise<Buffer> {
    this.#resume();
    if (this.#error !== undefined) throw this.#error;
    if (this.#length > 0 || this.state === 'whole') {
      this.reservation?.release();
      return this.#take();
    }
    return this.#arrival().then(() => this.readChunk());
  }

  /** Discards the rest. A reader gets the error. */
  leave(error: Error = new ClientGone('The body is not read further.')): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.#take();
    if (this.state !== 'whole') {
      this.#resume();
      this.#incoming.resume();
    }
    this.#wake?.();
  }

  async #readOn(bytesMax: number): Promise<Buffer> {
    this.#aheadBytesMax = Infinity;
    this.#resume();
    for (;;) {
      await this.#arrival();
      const body = this.#takeWhole(bytesMax);
      if (body !== undefined) return body;
    }
  }

  /** Returns the body if it is whole. If it must not or cannot be read on, leaves it and throws. */
  #takeWhole(bytesMax: number): Buffer | undefined {
    const length = this.#length;
    const isWhole = this.state === 'whole';
    if (length > bytesMax) this.leave(tooLarge(bytesMax));
    else if (length > uncountedBytesMax) {
      const reservation = (this.reservation ??= this.#memory.open());
      const missing = (isWhole ? memoryOf(length) : this.#space.length) - reservation.bytes;
      if (missing > 0 && !reservation.grow(missing)) this.leave(poolIsFull());
    }
    if (this.#error !== undefined) throw this.#error;
    return isWhole ? this.#take() : undefined;
  }

  #take(): Buffer {
    const space = this.#space;
    const length = this.#length;
    this.#space = noBytes;
    this.#length = 0;
    return space.length === length ? space : space.subarray(0, length);
  }

  /** Resolves when more has arrived, or nothing more will. */
  #arrival(): Promise<void> {
    this.#invite?.();
    this.#invite = undefined;
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  #listen(): void {
    this.state = 'coming';
    this.#incoming
      .on('data', (piece: Buffer) => this.#add(piece))
      .on('end', () => {
        this.state = 'whole';
        this.#wake?.();
      })
      .on('close', () => {
        if (this.state !== 'whole') this.leave(new ClientGone('The request ended early.'));
      });
  }

  #add(piece: Buffer): void {
    // Also of a body that is discarded.
    if (piece.length < smallPieceBytes) this.#countSmall();
    if (this.#error !== undefined) return;
    this.#space = append(this.#space, this.#length, piece);
    this.#length += piece.length;
    this.#wake?.();
    if (this.#length <= this.#aheadBytesMax) return;
    // What no handler has asked for yet is in memory already, and cannot be refused.
    this.reservation ??= this.#memory.open();
    this.reservation.set(this.#space.length);
    if (this.#isPaused) return;
    this.#isPaused = true;
    // Deferred: after each chunk, Node 20 resumes the socket in a tick of its own.
    queueMicrotask(() => {
      const { complete, socket } = this.#incoming;
      // After a complete body the socket may carry the next request.
      if (this.#isPaused && !complete) socket.pause();
    });
  }

  #countSmall(): void {
    const { bytesRead } = this.#incoming.socket;
    if (bytesRead !== this.#packet) this.#smallPieces = 0;
    this.#packet = bytesRead;
    this.#smallPieces += 1;
    if (this.#smallPieces > smallPiecesMax) this.#refusePieces();
  }

  #refusePieces(): void {
    const incoming = this.#incoming;
    // What Node sets for a body that nobody wants (`_http_common.js` of Node 20 to 24): the pieces
    // of the rest of the packet do not enter the stream, which is half of their cost.
    Object.assign(incoming, { _dumped: true });
    this.isInPieces = true;
    incoming.socket.destroy();
    this.leave(new ClientGone('The body comes in too many small pieces.'));
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (!this.#incoming.complete) this.#incoming.socket.resume();
  }
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('content_too_large', `The body has more than ${bytesMax} bytes.`);
}

/** The pool is full; a later request may succeed. */
export function poolIsFull(): AppError {
  return overloaded('The server is serving too much at once.');
}

/**
 * Returns a buffer with `piece` after the first `length` bytes of `space`, which it is if there is
 * room. A client can send each byte separately, and each chunk would take about 250 bytes in
 * addition to its own.
 */
export function append(space: Buffer, length: number, piece: Buffer): Buffer {
  // Most bodies are a single chunk, which is not copied.
  if (length === 0) return piece;
  const end = length + piece.length;
  // Doubled, so that each byte is copied about twice.
  const grown = end <= space.length ? space : Buffer.allocUnsafeSlow(2 * end);
  if (grown !== space) space.copy(grown, 0, 0, length);
  piece.copy(grown, length);
  return grown;
}
