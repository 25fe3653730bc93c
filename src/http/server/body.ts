/** The body of a request: read whole within a limit, or passed on as a stream. */

import type { IncomingMessage } from 'node:http';
import { AppError } from '../../errors.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import { uncountedBytesMax } from '../../memory-pool.ts';
import type { BodyFlow, BodySink } from '../message.ts';
import { GatheredBytes } from './gathered-bytes.ts';

/** True if a body follows the head (RFC 9112 §6.3). */
export function hasBody(incoming: IncomingMessage): boolean {
  const { headers } = incoming;
  if (headers['transfer-encoding'] !== undefined) return true;
  return headers['content-length'] !== undefined && headers['content-length'] !== '0';
}

/** The declared length in bytes; 0 for a chunked body. */
export function declaredLength(incoming: IncomingMessage): number {
  return Number(incoming.headers['content-length'] ?? 0);
}

/** The client left before its request was complete, or does not read: no response is possible. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** Reserves memory for a body. Throws `overloaded` if there is no room. */
export type TakeRoom = (bytes: number) => void;

/** The memory of parsed JSON values, as a multiple of the bytes of the text. */
const parsedBytesPerByte = 8;

/** Bytes that are read of a body before a handler takes it. */
const aheadBytesMax = 16_384;
/** Chunks smaller than this are passed on together, after the packets of this iteration. */
const smallPieceBytes = 1_024;

interface Limits {
  readonly bytesMax: number;
  readonly takeRoom: TakeRoom;
}

interface Reader extends Limits {
  readonly resolve: (body: Buffer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A body that is being received. It is copied together from the start, also while its request
 * waits: Node would keep each chunk as an object, and a client can send each byte separately.
 */
export class RequestBody implements BodyFlow {
  readonly #incoming: IncomingMessage;
  readonly #bytes = new GatheredBytes();
  /** The handler that waits for the whole body, or takes it as a stream. */
  #reader: Reader | undefined;
  #sink: BodySink | undefined;
  #state: 'unread' | 'coming' | 'whole' | 'cut' | 'left' = 'unread';
  #start: (() => void) | undefined;
  #roomTaken = 0;
  #isPaused = false;
  #isFlushDue = false;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
    if (!hasBody(incoming)) this.#state = 'whole';
    // At once: Node keeps each chunk as an object, and one packet can bring ten thousand.
    else if (incoming.headers['transfer-encoding'] !== undefined) this.#listen();
  }

  /**
   * Called when Node has read the packets of this iteration of the event loop. Most bodies arrive
   * in those of their heads, and are taken in one call: it is faster than the events of a stream.
   */
  begin(): void {
    if (this.#state !== 'unread') return;
    const incoming = this.#incoming;
    if (incoming.socket.destroyed) return;
    if (incoming.complete) {
      const bytes = incoming.read() as Buffer | null;
      if (bytes !== null) this.#bytes.add(bytes);
      this.#state = 'whole';
    } else this.#listen();
    this.#start?.();
  }

  /**
   * Calls `start` after `begin`: most bodies are then whole, and their requests need not wait.
   * Never, if the connection ends before.
   */
  whenBegun(start: () => void): void {
    if (this.#state === 'unread') this.#start = start;
    else start();
  }

  #listen(): void {
    this.#state = 'coming';
    this.#incoming
      .on('data', (piece: Buffer) => this.#add(piece))
      .on('end', () => this.#finish('whole'))
      .on('close', () => this.#finish('cut'));
  }

  /**
   * Reads the whole body; returns a promise only if it is not whole yet. Fails with
   * `content_too_large` for a declared length over `bytesMax`, before more is read, and for a
   * chunked body as soon as it is longer. Calls `takeRoom` before a large body is held, and fails
   * with what that throws. Fails with ClientGone if the body ends early.
   */
  read(bytesMax: number, takeRoom: TakeRoom): MaybePromise<Buffer> {
    if (declaredLength(this.#incoming) > bytesMax) throw tooLarge(bytesMax);
    const limits = { bytesMax, takeRoom };
    const body = this.#check(limits);
    if (body !== undefined) return body;
    return new Promise((resolve, reject) => {
      this.#reader = { ...limits, resolve, reject };
      this.resume();
    });
  }

  /** For handlers that must not hold it in memory. The sink is not called before this returns. */
  stream(sink: BodySink): BodyFlow {
    this.#sink = sink;
    this.resume();
    return this;
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    // Deferred: after each chunk, Node 20 resumes the socket in a tick of its own.
    queueMicrotask(() => {
      const { complete, socket } = this.#incoming;
      // After a complete body the socket may carry the next request.
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

  /** Passes on what was received. The sink may pause or leave when it gets it. */
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

  /** May settle the promise again, which has no effect. */
  #advance(reader: Reader): void {
    try {
      const body = this.#check(reader);
      if (body !== undefined) reader.resolve(body);
    } catch (error) {
      reader.reject(error);
    }
  }

  /** Returns the body if it is whole. If it must not or cannot be read on, leaves it and throws. */
  #check({ bytesMax, takeRoom }: Limits): Buffer | undefined {
    const { length, capacity } = this.#bytes;
    try {
      if (length > bytesMax) throw tooLarge(bytesMax);
      if (this.#state === 'cut') throw new ClientGone('The request ended early.');
      const isWhole = this.#state === 'whole';
      this.#takeRoom(isWhole ? length * (1 + parsedBytesPerByte) : capacity, takeRoom);
      return isWhole ? this.#bytes.take() : undefined;
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  #takeRoom(bytes: number, takeRoom: TakeRoom): void {
    if (this.#bytes.length <= uncountedBytesMax || bytes <= this.#roomTaken) return;
    takeRoom(bytes - this.#roomTaken);
    this.#roomTaken = bytes;
  }
}

/**
 * Receives the bodies of requests; undefined for a message without one. Those whose heads arrived
 * in one iteration of the event loop begin together, before `done` is called.
 */
export function createBodyReceiver(
  done: () => void,
): (incoming: IncomingMessage) => RequestBody | undefined {
  let arriving: RequestBody[] = [];
  const begin = (): void => {
    const bodies = arriving;
    arriving = [];
    for (const body of bodies) body.begin();
    done();
  };
  return (incoming) => {
    if (!hasBody(incoming)) return undefined;
    const body = new RequestBody(incoming);
    if (arriving.push(body) === 1) setImmediate(begin);
    return body;
  };
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('content_too_large', `The body has more than ${bytesMax} bytes.`);
}
