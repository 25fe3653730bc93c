/** A request as handlers see it, backed by Node's message. */

import type { ServerResponse } from 'node:http';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import type { Params } from '../../router.ts';
import { declaredLength, type RequestBody } from './body.ts';
import type { Incoming } from './incoming.ts';
import type { Endpoint, HttpRequest } from '../message.ts';

/** A message from Node, and the response to it. */
export interface Message {
  readonly incoming: Incoming;
  readonly outgoing: ServerResponse;
  /** The header `Expect` (RFC 9110 §10.1.1): `100-continue`, or an unknown expectation. */
  readonly expectation: 'none' | 'continue' | 'other';
}

interface Reception {
  /** Undefined if the message has none. */
  readonly body: RequestBody | undefined;
  /** Accounts for the memory of the request. */
  readonly pool: MemoryPool;
}

const noBody = Buffer.alloc(0);

/** The listener sets the empty properties before the handler runs. */
export class Request implements HttpRequest {
  readonly id: string;
  readonly incoming: Incoming;
  readonly outgoing: ServerResponse;
  readonly method: string;
  path = '';
  query = '';
  host = '';
  params: Params = {};
  /** Undefined if no route matched. */
  endpoint: Endpoint | undefined;
  /** Milliseconds of `performance.now()`. */
  readonly startedAt = performance.now();
  /** `continue` while the client waits for `100 Continue`. */
  expectation: Message['expectation'];
  readonly body: RequestBody | undefined;
  readonly #pool: MemoryPool;
  /** Released when the request is answered. */
  #room: Reservation | undefined;

  constructor(id: string, message: Message, { body, pool }: Reception) {
    this.id = id;
    this.incoming = message.incoming;
    this.outgoing = message.outgoing;
    this.method = message.incoming.method ?? '';
    this.expectation = message.expectation;
    this.body = body;
    this.#pool = pool;
  }

  get remoteAddress(): string {
    return this.incoming.socket.remoteAddress ?? '';
  }

  header(name: string): string | undefined {
    const value = this.incoming.headers[name];
    return typeof value === 'string' ? value : value?.join(', ');
  }

  readBody(bytesMax: number): MaybePromise<Buffer> {
    // A body that is declared too long is refused before the client sends it.
    const isWaiting = this.expectation === 'continue';
    if (isWaiting && declaredLength(this.incoming) <= bytesMax) this.invite();
    return this.body?.read(bytesMax) ?? noBody;
  }

  readChunk(): MaybePromise<Buffer> {
    if (this.expectation === 'continue') this.invite();
    return this.body?.readChunk() ?? noBody;
  }

  get room(): Reservation {
    return (this.#room ??= this.#pool.open());
  }

  /** Returns its memory to the pool. */
  release(): void {
    this.#room?.release();
    this.body?.release();
  }

  private invite(): void {
    this.expectation = 'none';
    this.outgoing.writeContinue();
  }
}
