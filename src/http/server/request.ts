/** One request as handlers see it, around Node's own message. */

import type { ServerResponse } from 'node:http';
import { AppError } from '../../errors.ts';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import type { Params } from '../../router.ts';
import { declaredLength, RequestBody } from './body.ts';
import type { Incoming } from './incoming.ts';
import type { BodyFlow, BodySink, Endpoint, HttpRequest } from '../message.ts';

/** The other half, and how the client waits for it. */
export interface Exchange {
  readonly response: ServerResponse;
  readonly expectsContinue: boolean;
  /** Undefined where the message has none. */
  readonly body: RequestBody | undefined;
  /** Where the memory comes from that the body takes. */
  readonly pool: MemoryPool;
}

const noBody = Promise.resolve(Buffer.alloc(0));

/** A body that is handed on as a stream: batches for the disk, and what arrives meanwhile. */
const streamedBytesMax = 2 * 1024 * 1024;

/** What is empty here the listener fills in before the handler runs. */
export class Request implements HttpRequest {
  readonly id: string;
  readonly incoming: Incoming;
  readonly response: ServerResponse;
  readonly method: string;
  path = '';
  query = '';
  host = '';
  params: Params = {};
  /** Undefined where the request leads to none. */
  endpoint: Endpoint | undefined;
  /** By the clock of `performance`. */
  readonly startedAt = performance.now();
  /** True while the client waits for `100 Continue` before it sends its body. */
  awaited: boolean;
  readonly body: RequestBody | undefined;
  readonly #pool: MemoryPool;
  /** Held until the request is answered. */
  #room: Reservation | undefined;

  constructor(id: string, incoming: Incoming, exchange: Exchange) {
    this.id = id;
    this.incoming = incoming;
    this.response = exchange.response;
    this.method = incoming.method ?? '';
    this.awaited = exchange.expectsContinue;
    this.body = exchange.body;
    this.#pool = exchange.pool;
  }

  get remoteAddress(): string {
    return this.incoming.socket.remoteAddress ?? '';
  }

  header(name: string): string | undefined {
    const value = this.incoming.headers[name];
    return typeof value === 'string' ? value : value?.join(', ');
  }

  readBody(bytesMax: number): Promise<Buffer> {
    // A body that is declared too long is refused before the client is asked to send it.
    if (this.awaited && declaredLength(this.incoming) <= bytesMax) this.invite();
    return this.body?.read(bytesMax, (bytes) => this.take(bytes)) ?? noBody;
  }

  streamBody(sink: BodySink): BodyFlow {
    const { 'content-length': length } = this.incoming.headers;
    // Who sends slowly holds this room for long: the connection ends where others need it.
    this.#room = this.#pool.open(() => this.incoming.socket.destroy());
    this.take(length === undefined ? streamedBytesMax : Math.min(Number(length), streamedBytesMax));
    if (this.awaited) this.invite();
    return (this.body ?? new RequestBody(this.incoming)).stream(sink);
  }

  /** Gives back the memory of the body. */
  release(): void {
    this.#room?.release();
  }

  private take(bytes: number): void {
    this.#room ??= this.#pool.open();
    if (!this.#room.grow(bytes)) throw overloaded();
  }

  private invite(): void {
    this.awaited = false;
    this.response.writeContinue();
  }
}

/** The pool is used up: a later try will find room. */
export function overloaded(): AppError {
  return new AppError('overloaded', 'The server is serving too much at once.', {
    retryAfterSeconds: 1,
  });
}
