/**
 * The body of a request: read whole within a limit, or chunk by chunk.
 *
 * Bytes are received from the first iteration on, also while the request waits for its place or its
 * handler for a store. They are copied into one buffer as they arrive: Node would keep each chunk
 * as an object, and a client can send each byte separately. What becomes of a piece that arrives
 * depends on who reads:
 *
 * | reader      | up to 16 KiB | beyond                              | at the end            |
 * | ----------- | ------------ | ----------------------------------- | --------------------- |
 * | nobody yet  | kept         | kept and counted; socket is paused  | kept for the reader   |
 * | `read`      | kept         | kept, if the pool has memory        | returned whole        |
 * | `readChunk` | returned     | kept and counted; socket is paused  | returned, then empty  |
 * | `leave`     | dropped      | dropped                             | dropped               |
 *
 * Example: a POST of 1 MB in 17 packets while its handler looks up the post. The first packet has
 * the head and 60 KB: more than 16 KiB, so they are counted and the socket is paused. The handler
 * calls `read`: the socket is resumed, and the reservation grows before the buffer does, to 2 MB
 * for the bytes and their text. The turn that parses the body calls `reserveValues`: 5 MB, until
 * the response was sent.
 */

import type { IncomingMessage } from 'node:http';
import { AppError } from '../../errors.ts';
import {
  type ConnectionMemory,
  poolIsFull,
  type Reservation,
  uncountedBytesMax,
} from '../../memory-pool.ts';
import { ArrivedBytes } from './arrived-bytes.ts';
import type { Message } from './incoming.ts';

/** The client left before its request was complete, or does not read: no response is possible. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** A body that waits takes the memory of its bytes and of their text. */
const waitingFactor = 2;
/**
 * The values of a JSON text take up to 22 times its length, and 67 bytes each; `jsonValuesMax`
 * limits their number.
 */
const valuesFactor = 22;
const valuesBytesMax = 3 * 1024 * 1024;

/** The memory that a JSON body can take: its bytes, its text, and its values. */
export function memoryOf(length: number): number {
  return waitingFactor * length + Math.min(valuesFactor * length, valuesBytesMax);
}

/** Up to this size Node reads the rest of a body, so that the connection can be reused. */
const restBytesMax = 65_536;

/**
 * Limit for small pieces of a body in one packet; one more ends the connection. Each piece costs as
 * much as a hundred bytes, and a packet of 64 KiB can hold ten thousand pieces of one byte. The
 * packet is judged, not the body: a client that sends small pieces slowly costs nobody anything.
 */
const smallPiecesMax = 500;
/** A piece below this size is small. */
const smallPieceBytes = 64;

export class RequestBody {
  /** Memory beyond what counts as part of a connection. Released with the response. */
  readonly reservation: Reservation;
  readonly #incoming: IncomingMessage;
  /** In bytes; not a number for a chunked body. */
  readonly #declaredLength: number;
  /** What arrived and nobody has taken. */
  readonly #arrived = new ArrivedBytes();
  #hasBegun = false;
  /** True when all has arrived. */
  #isWhole = false;
  /** Why no more can be read. */
  #error: Error | undefined;
  /** Sends `100 Continue`, until it is sent. */
  #invite: (() => void) | undefined;
  /** Resumes the reader that waits for more. */
  #wake: (() => void) | undefined;
  #isReadWhole = false;
  #isPaused = false;
  /** The small pieces of the last packet; and `bytesRead` of the socket, which tells it apart. */
  #smallPieces = 0;
  #packet = 0;

  constructor({ incoming, outgoing, expectation }: Message, memory: ConnectionMemory) {
    this.reservation = memory.open();
    this.#incoming = incoming;
    this.#declaredLength = Number(incoming.headers['content-length']);
    if (expectation === 'continue') this.#invite = () => outgoing.writeContinue();
    incoming.on('close', () => {
      if (!this.#isWhole) this.leave(new ClientGone('The request ended early.'));
    });
    // At once: Node keeps each chunk as an object, and one packet can bring ten thousand.
    if (incoming.headers['transfer-encoding'] !== undefined) this.begin();
  }

  /**
   * Receives what has come and what comes. Call it when Node has read the packets of an iteration:
   * most bodies come with their heads, and are taken in one call. The events of a stream take a
   * tenth of the time of a GraphQL query that is in the cache.
   */
  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const incoming = this.#incoming;
    if (incoming.complete) {
      // Without the length, `read` returns the first piece alone from Node 26.
      const bytes = incoming.read(incoming.readableLength) as Buffer | null;
      if (bytes !== null) this.#add(bytes);
      this.#isWhole = true;
      return;
    }
    incoming
      .on('data', (piece: Buffer) => this.#add(piece))
      .on('end', () => {
        this.#isWhole = true;
        this.#wake?.();
      });
  }

  /** True while a handler waits for bytes of the client. */
  get isAwaited(): boolean {
    return this.#wake !== undefined;
  }

  /** True while the socket is paused until somebody reads. */
  get isHeldBack(): boolean {
    return this.#isPaused && !this.#incoming.complete;
  }

  /** True if the rest of an incomplete body is too long to be discarded, or was not asked for. */
  get isLeftUnread(): boolean {
    return this.#invite !== undefined || !(this.#declaredLength <= restBytesMax);
  }

  /**
   * Reads the whole body. Fails with `content_too_large` for a declared length over `bytesMax`,
   * before more is read, and for a chunked body as soon as it is longer; with `overloaded` if there
   * is no memory for a large one; with ClientGone if the body ends early.
   */
  async read(bytesMax: number): Promise<Buffer> {
    if (this.#declaredLength > bytesMax) throw tooLarge(bytesMax);
    this.#isReadWhole = true;
    this.#resume();
    while (this.#error === undefined && !this.#isWhole && this.#arrived.length <= bytesMax) {
      await this.#arrival();
    }
    if (this.#arrived.length > bytesMax) this.leave(tooLarge(bytesMax));
    if (this.#arrived.length > uncountedBytesMax)
      this.#reserve(waitingFactor * this.#arrived.length);
    if (this.#error !== undefined) throw this.#error;
    return this.#arrived.take();
  }

  /** Reserves what the values of a body that was read can take, in the turn that parses it. */
  reserveValues(length: number): void {
    if (length > uncountedBytesMax && !this.#reserve(memoryOf(length))) throw poolIsFull();
  }

  /** Returns what arrived since the last call; waits if nothing did. Empty at the end. */
  async readChunk(): Promise<Buffer> {
    this.#resume();
    while (this.#error === undefined && !this.#isWhole && this.#arrived.length === 0) {
      await this.#arrival();
    }
    if (this.#error !== undefined) throw this.#error;
    this.reservation.release();
    return this.#arrived.take();
  }

  /** Discards the rest. A reader gets the error. */
  leave(error: Error = new ClientGone('The body is not read further.')): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.#arrived.take();
    this.#resume();
    this.#wake?.();
  }

  /** Raises the reservation to `bytes`; leaves the body and returns false if they are not free. */
  #reserve(bytes: number): boolean {
    const missing = bytes - this.reservation.bytes;
    const isReserved = missing <= 0 || this.reservation.grow(missing);
    if (!isReserved) this.leave(poolIsFull());
    return isReserved;
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

  #add(piece: Buffer): void {
    // Small pieces of a body that is discarded count too.
    if (piece.length < smallPieceBytes) this.#countSmall();
    if (this.#error !== undefined) return;
    const bytes = this.#arrived.capacityWith(piece.length);
    if (bytes > uncountedBytesMax) {
      // What no handler has asked for yet is in memory already, and cannot be refused.
      if (!this.#isReadWhole) this.reservation.set(bytes);
      else if (!this.#reserve(bytes)) return;
    }
    this.#arrived.append(piece);
    this.#wake?.();
    if (!this.#isReadWhole && this.#arrived.length > uncountedBytesMax) this.#pause();
  }

  #countSmall(): void {
    const { socket } = this.#incoming;
    this.#smallPieces = socket.bytesRead === this.#packet ? this.#smallPieces + 1 : 1;
    this.#packet = socket.bytesRead;
    if (this.#smallPieces <= smallPiecesMax) return;
    socket.destroy();
    this.leave(new ClientGone('The body comes in too many small pieces.'));
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    // Deferred: after each chunk, Node 20 resumes the socket in a tick of its own.
    queueMicrotask(() => {
      const { complete, socket } = this.#incoming;
      // After a complete body the socket may carry the next request.
      if (this.#isPaused && !complete) socket.pause();
    });
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
