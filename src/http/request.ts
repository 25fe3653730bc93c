/** One request as handlers see it, around Node's own message. */

import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Params } from '../router.ts';
import { declaredLength, readBody } from './body.ts';
import type { Incoming } from './incoming.ts';
import type { HttpRequest } from './message.ts';
import type { Member } from './roster.ts';

/** The other half, and how the client waits for it. */
export interface Exchange {
  readonly response: ServerResponse;
  readonly expectsContinue: boolean;
  /** No request of the connection is answered after this one. */
  readonly isLast: boolean;
}

/** What is empty here the listener fills in before the handler runs. */
export class Request implements HttpRequest, Member {
  readonly id: string;
  readonly incoming: Incoming;
  readonly response: ServerResponse;
  readonly method: string;
  path = '';
  query = '';
  host = '';
  params: Params = {};
  /** True while the client waits for `100 Continue` before it sends its body. */
  awaited: boolean;
  readonly isLast: boolean;
  place = -1;

  constructor(id: string, incoming: Incoming, exchange: Exchange) {
    this.id = id;
    this.incoming = incoming;
    this.response = exchange.response;
    this.method = incoming.method ?? '';
    this.awaited = exchange.expectsContinue;
    this.isLast = exchange.isLast;
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
    return readBody(this.incoming, bytesMax);
  }

  streamBody(): Readable {
    if (this.awaited) this.invite();
    return this.incoming;
  }

  private invite(): void {
    this.awaited = false;
    this.response.writeContinue();
  }
}
