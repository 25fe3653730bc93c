/**
 * Each request, once it is over: the one place that tells the log and the metrics of it. A listener
 * without an `Observer` does none of this.
 */

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Endpoint, HttpReply } from '../message.ts';
import type { Request } from './request.ts';

/** What is known of a request: also of a handshake, and of bytes that were none. */
export interface Observed {
  readonly id: string;
  /** Empty where it is not known. */
  readonly method: string;
  /** Undefined where it leads to none. */
  readonly endpoint: Pick<Endpoint, 'route'> | undefined;
  readonly remoteAddress: string;
  header(name: string): string | undefined;
}

/** A request that is over. */
export interface Finished {
  readonly request: Observed;
  /** 499 where the client left before its answer. */
  readonly status: number;
  /** Of the content; of a stream also those of its head and chunks. */
  readonly bytes: number;
  /** From the request's turn until its answer began. */
  readonly waitedMilliseconds: number;
  /** Until the answer was handed over, or its stream was at its end. */
  readonly milliseconds: number;
}

export interface Observer {
  /** Its turn has come; `end` follows in any case. */
  begin?(): void;
  end(finished: Finished): void;
  /** A WebSocket is open; what it gives back is to be called with the code of its closing. */
  openSession(handshake: Observed): (code: number) => void;
}

/** No status of the protocol: what proxies write in their logs. */
const clientLeft = 499;

/** To be called when an answer has been handed over, or has begun where it is a stream. */
export function observeAnswer(
  request: Request,
  { status, body }: HttpReply,
  { observer, bytes }: { readonly observer: Observer; readonly bytes: number },
): void {
  const { response } = request;
  const waitedMilliseconds = performance.now() - request.startedAt;
  if (!response.headersSent) observeLeft(request, observer);
  else if (typeof body === 'object' && body instanceof Readable) {
    const { socket } = request.incoming;
    const before = socket.bytesWritten;
    response.once('close', () => {
      const milliseconds = performance.now() - request.startedAt;
      const written = socket.bytesWritten - before;
      observer.end({ request, status, bytes: written, waitedMilliseconds, milliseconds });
    });
  } else {
    observer.end({ request, status, bytes, waitedMilliseconds, milliseconds: waitedMilliseconds });
  }
}

/** To be called for a client that has left before its answer was made. */
export function observeLeft(request: Request, observer: Observer): void {
  const milliseconds = performance.now() - request.startedAt;
  const waitedMilliseconds = milliseconds;
  observer.end({ request, status: clientLeft, bytes: 0, waitedMilliseconds, milliseconds });
}

/** For what is answered past the listener: a handshake, and bytes that are no request. */
export function observeAtOnce(
  request: Observed,
  { status, bytes }: Pick<Finished, 'status' | 'bytes'>,
  observer: Observer,
): void {
  observer.begin?.();
  observer.end({ request, status, bytes, waitedMilliseconds: 0, milliseconds: 0 });
}

/** What is known of a message that no `Request` is made of. */
export function toObserved(
  { method = '', headers, socket }: IncomingMessage,
  id: string,
  endpoint?: Observed['endpoint'],
): Observed {
  const { remoteAddress = '' } = socket;
  return { id, method, endpoint, remoteAddress, header: (name) => toText(headers[name]) };
}

/** Only Set-Cookie is ever a list. */
export function toText(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.join(', ');
}
