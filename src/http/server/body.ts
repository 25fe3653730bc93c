/**
 * The body of a request: read whole within a limit, or chunk by chunk.
 *
 * Bytes are received from the beginning, also while the request waits for its place or its handler
 * for a store. They are copied into one buffer as they arrive: Node would keep each chunk as an
 * object, and a client can send each byte separately. What becomes of a piece that arrives depends
 * on who reads:
 *
 * | reader      | up to 16 KiB | beyond                              | at the end            |
 * | ----------- | ------------ | ----------------------------------- | --------------------- |
 * | nobody yet  | kept         | kept and counted; socket is paused  | kept for the reader   |
 * | `read`      | kept         | kept, if the pool has memory        | returned whole        |
 * | `readChunk` | returned     | kept and counted; socket is paused  | returned, then empty  |
 * | `leave`     | dropped      | dropped                             | dropped               |
 *
 * `state` says what Node has delivered:
 *
 *     unread ── begin ──▶ whole       the body came in the packets of its head
 *        └───── begin ──▶ coming ──▶ whole
 *     coming (a chunked body, from the start)
 *
 * Example: a POST of 1 MB in 17 packets while its handler looks up the post. The first packet has
 * the head and 60 KB: `begin` finds the body incomplete and listens; 60 KB are more than 16 KiB, so
 * they are counted and the socket is paused. The handler calls `read`: the socket is resumed, and
 * the reservation grows with the buffer to 2 MB, for the bytes and their text. The turn that parses
 * the body calls `reserveValues`: 5 MB, until the response was sent.
 */

import type { IncomingMessage } from 'node:http';
import { AppError } from '../../errors.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
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
  readonly #arrived = new ArrivedBytes();
  state: 'unread' | 'coming' | 'whole' = 'unread';
  /** Why no more can be read. */
  #error: Error | undefined;
  /** Sends `100 Continue`, until it is sent. */
  #invite: (() => void) | undefined;
  /** Resumes the reader that waits for more. */
  #wake: (() => void) | undefined;
  #isReadWhole = false;
  #isPaused = false;
  /** True if the connection was ended because the body came in too many pieces. */
  isInPieces = false;
  /** The small pieces of the last packet; and `bytesRead` of the socket, which tells it apart. */
  #smallPieces = 0;
  #packet = 0;

  constructor({ incoming, outgoing, expectation }: Message, memory: ConnectionMemory) {
    this.reservation = memory.open();
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

  /** True if the rest of an incomplete body is too long to be discarded, or was not asked for. */
  get isLeftUnread(): boolean {
    return this.#invite !== undefined || !(this.#declaredLength <= restBytesMax);
  }

  /**
   * Receives what arrived once `packetsAreRead`: most bodies arrive in the packets of their heads,
   * and are taken in one call, which is faster than the events of a stream.
   */
  async begin(packetsAreRead: Promise<void>): Promise<void> {
    await packetsAreRead;
    const incoming = this.#incoming;
    if (incoming.socket.destroyed) return;
    if (!incoming.complete) {
      this.#listen();
      return;
    }
    // Without the length, `read` returns the first piece alone from Node 26.
    const bytes = incoming.read(incoming.readableLength) as Buffer | null;
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

  /** Reserves what the values of a body that was read can take, in the turn that parses it. */
  reserveValues(length: number): void {
    if (length > uncountedBytesMax) this.#reserve(memoryOf(length));
  }

  /** Returns what arrived since the last call; waits if nothing did. Empty at the end. */
  readChunk(): MaybePromise<Buffer> {
    this.#resume();
    if (this.#error !== undefined) throw this.#error;
    if (this.#arrived.length > 0 || this.state === 'whole') {
      this.reservation.release();
      return this.#arrived.take();
    }
    return this.#arrival().then(() => this.readChunk());
  }

  /** Discards the rest. A reader gets the error. */
  leave(error: Error = new ClientGone('The body is not read further.')): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.#arrived.take();
    if (this.state !== 'whole') {
      this.#resume();
      this.#incoming.resume();
    }
    this.#wake?.();
  }

  async #readOn(bytesMax: number): Promise<Buffer> {
    this.#isReadWhole = true;
    this.#resume();
    for (;;) {
      await this.#arrival();
      const body = this.#takeWhole(bytesMax);
      if (body !== undefined) return body;
    }
  }

  /** Returns the body if it is whole. If it must not or cannot be read on, leaves it and throws. */
  #takeWhole(bytesMax: number): Buffer | undefined {
    const { length, capacity } = this.#arrived;
    const isWhole = this.state === 'whole';
    if (length > bytesMax) this.leave(tooLarge(bytesMax));
    if (this.#error !== undefined) throw this.#error;
    if (length > uncountedBytesMax) this.#reserve(isWhole ? waitingFactor * length : capacity);
    return isWhole ? this.#arrived.take() : undefined;
  }

  #reserve(bytes: number): void {
    const missing = bytes - this.reservation.bytes;
    if (missing <= 0 || this.reservation.grow(missing)) return;
    const error = poolIsFull();
    this.leave(error);
    throw error;
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
    // Small pieces of a body that is discarded count too.
    if (piece.length < smallPieceBytes) this.#countSmall();
    if (this.#error !== undefined) return;
    this.#arrived.append(piece);
    this.#wake?.();
    if (this.#isReadWhole || this.#arrived.length <= uncountedBytesMax) return;
    // What no handler has asked for yet is in memory already, and cannot be refused.
    this.reservation.set(this.#arrived.capacity);
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
    const { socket } = this.#incoming;
    this.#smallPieces = socket.bytesRead === this.#packet ? this.#smallPieces + 1 : 1;
    this.#packet = socket.bytesRead;
    if (this.#smallPieces <= smallPiecesMax || this.isInPieces) return;
    this.isInPieces = true;
    socket.destroy();
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
