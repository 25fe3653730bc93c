/** Reports each finished request to an `Observer`; without one, nothing is reported. */

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { AppError } from '../../errors.ts';
import type { Endpoint, HttpRequest, HttpResponse } from '../message.ts';
import type { Request } from './request.ts';

/** A request, a handshake, or bytes that are not a request: then the method is empty. */
export interface Observed extends Pick<HttpRequest, 'id' | 'method' | 'remoteAddress' | 'header'> {
  /** Undefined if no route matched. */
  readonly endpoint: Pick<Endpoint, 'route'> | undefined;
}

/** A finished request. */
export interface Finished {
  readonly request: Observed;
  /** 499 if the client left before its response. */
  readonly status: number;
  /** Bytes of the content; for a stream, of head and chunks too. */
  readonly bytes: number;
  /** From the start of the request until its response began. */
  readonly waitedMilliseconds: number;
  /** Until the response was written, or its stream ended. */
  readonly milliseconds: number;
  /** The error that is, or would have been, the response. */
  readonly error?: AppError | undefined;
}

export interface Observer {
  /** The request starts. `end` follows in any case. */
  begin(): void;
  end(finished: Finished): void;
  /** A WebSocket was opened. Call the returned function with its close code. */
  openSession(handshake: Observed): (code: number) => void;
}

/** Not a status of HTTP; proxies use it in their logs. */
const clientLeft = 499;

/** Call it when a response was written or, for a stream, has begun. */
export function observeResponse(
  request: Request,
  { status, body, error }: HttpResponse,
  { observer, bytes }: { readonly observer: Observer; readonly bytes: number },
): void {
  const { outgoing } = request;
  const waitedMilliseconds = performance.now() - request.startedAt;
  if (!outgoing.headersSent) observeLeft(request, observer, error);
  else if (typeof body === 'object' && body instanceof Readable) {
    const { socket } = request.incoming;
    const before = socket.bytesWritten;
    outgoing.once('close', () => {
      const milliseconds = performance.now() - request.startedAt;
      const written = socket.bytesWritten - before;
      observer.end({ request, status, bytes: written, waitedMilliseconds, milliseconds });
    });
  } else {
    const milliseconds = waitedMilliseconds;
    observer.end({ request, status, bytes, waitedMilliseconds, milliseconds, error });
  }
}

/** Call it for a client that left before its response was made, or before it was sent. */
export function observeLeft(request: Request, observer: Observer, error?: AppError): void {
  const milliseconds = performance.now() - request.startedAt;
  const waitedMilliseconds = milliseconds;
  observer.end({ request, status: clientLeft, bytes: 0, waitedMilliseconds, milliseconds, error });
}

/** For what the listener does not handle: handshakes, and bytes that are not a request. */
export function observeAtOnce(
  request: Observed,
  { status, bytes, error }: Pick<Finished, 'status' | 'bytes' | 'error'>,
  observer: Observer,
): void {
  observer.begin();
  observer.end({ request, status, bytes, waitedMilliseconds: 0, milliseconds: 0, error });
}

/** The same values for a message without a `Request`. */
export function toObserved(
  { method = '', headers, socket }: IncomingMessage,
  id: string,
  endpoint?: Observed['endpoint'],
): Observed {
  const { remoteAddress = '' } = socket;
  return { id, method, endpoint, remoteAddress, header: (name) => toText(headers[name]) };
}

/** Only Set-Cookie can be an array. */
export function toText(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.join(', ');
}
