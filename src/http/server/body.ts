/** A request's body: read whole within a limit, or handed on as a stream. */

import type { IncomingMessage } from 'node:http';
import { AppError } from '../../errors.ts';
import { uncountedBytesMax } from '../../memory-pool.ts';
import type { BodyFlow, BodySink } from '../message.ts';
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

/** What is read of a body that nobody takes. */
const aheadBytesMax = 16_384;
/** Pieces below this are given together, when the packets of this iteration are read. */
const smallPieceBytes = 1_024;

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
export class RequestBody implements BodyFlow {
  readonly #incoming: IncomingMessage;
  readonly #bytes = new GatheredBytes();
  /** Who waits for all of it, or takes it while it comes. */
  #reader: Reader | undefined;
  #sink: BodySink | undefined;
  #state: 'coming' | 'whole' | 'cut' | 'left' = 'coming';
  #roomTaken = 0;
  #isPaused = false;
  #isFlushDue = false;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
    if (!hasBody(incoming)) this.#state = 'whole';
    // Before that Node would keep each chunk as an object, and one read can bring ten thousand.
    else if (incoming.headers['transfer-encoding'] !== undefined) this.#listen();
    else setImmediate(RequestBody.#begin, this);
  }

  /**
   * Most bodies come in the packets of their head, which Node has read by now: they are taken in
   * one call, without the events of a stream.
   */
  static #begin(this: void, body: RequestBody): void {
    const incoming = body.#incoming;
    if (body.#state === 'left') return;
    if (!incoming.complete) {
      body.#listen();
      return;
    }
    const bytes = incoming.read() as Buffer | null;
    if (bytes !== null) body.#add(bytes);
    body.#finish('whole');
  }

  #listen(): void {
    this.#incoming
      .on('data', (piece: Buffer) => this.#add(piece))
      .on('end', () => this.#finish('whole'))
      .on('close', () => this.#finish('cut'));
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
      const reader = { bytesMax, takeRoom, resolve, reject };
      this.#reader = reader;
      this.resume();
      this.#advance(reader);
    });
  }

  /** For who must not hold it in memory. Nothing is given to `sink` before this returns. */
  stream(sink: BodySink): BodyFlow {
    this.#sink = sink;
    this.resume();
    return this;
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    // No earlier: after each piece, Node 20 resumes the socket in a tick of its own.
    queueMicrotask(() => {
      const { complete, socket } = this.#incoming;
      // Behind a whole body another request may wait to be read.
      if (this.#isPaused && !complete) socket.pause();
    });
  }

  resume(): void {
    this.#flushSoon();
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (!this.#incoming.complete) this.#incoming.socket.resume();
  }

  leave(): void {
    this.#state = 'left';
    this.#sink = undefined;
    this.#bytes.take();
    this.resume();
    this.#incoming.resume();
  }

  #add(piece: Buffer): void {
    if (this.#state === 'left') return;
    const isSmall = piece.length < smallPieceBytes;
    if (!isSmall) this.#flush();
    this.#bytes.add(piece);
    if (this.#reader !== undefined) this.#advance(this.#reader);
    else if (this.#sink === undefined) {
      if (this.#bytes.length > aheadBytesMax) this.pause();
    } else if (isSmall) this.#flushSoon();
    else this.#flush();
  }

  #finish(state: 'whole' | 'cut'): void {
    if (this.#state !== 'coming') return;
    this.#state = state;
    if (this.#reader === undefined) this.#flush();
    else this.#advance(this.#reader);
  }

  /** Gives the sink what has come. With what it takes it may pause, or leave. */
  #flush(): void {
    if (this.#state === 'cut') this.#endSink()?.cut();
    if (this.#isPaused) return;
    if (this.#bytes.length > 0) this.#sink?.take(this.#bytes.take());
    if (this.#state === 'whole' && !this.#isPaused) this.#endSink()?.end();
  }

  #flushSoon(): void {
    if (this.#isFlushDue || (this.#bytes.length === 0 && this.#state === 'coming')) return;
    this.#isFlushDue = true;
    setImmediate(() => {
      this.#isFlushDue = false;
      this.#flush();
    });
  }

  #endSink(): BodySink | undefined {
    const sink = this.#sink;
    this.#sink = undefined;
    return sink;
  }

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

function tooLarge(bytesMax: number): AppError {
  return new AppError('content_too_large', `The body has more than ${bytesMax} bytes.`);
}
