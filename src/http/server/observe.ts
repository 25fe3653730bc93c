/** Reports each finished request to an `Observer`; without one, nothing is reported. */

import type { IncomingMessage } from 'node:http';
import type { AppError } from '../../errors.ts';
import type { Endpoint, HttpRequest } from '../message.ts';

/** A request, a handshake, or bytes that are not a request: then the method is empty. */
interface Observed
  extends
    Pick<HttpRequest, 'id' | 'method' | 'remoteAddress' | 'header'>,
    Partial<Pick<HttpRequest, 'account' | 'changed' | 'logFacts' | 'params'>> {
  /** Undefined if no route matched. */
  readonly endpoint: Pick<Endpoint, 'route'> | undefined;
}

/** What was sent, or would have been. */
export interface Sent {
  readonly status: number;
  /** Bytes of the content; for a stream, of head and chunks too. */
  readonly bytes: number;
  /** The headers of the response: name, value, name, value. */
  readonly headers?: readonly string[];
  /** The error that is the response. */
  readonly error?: AppError | undefined;
}

/** A finished request. Its status is 499 if the client left before its response. */
export interface Finished extends Sent {
  readonly request: Observed;
  /** The status of the response that was made, also if the client has left before it. */
  readonly madeStatus: number;
  /** From the start of the request until its response began. */
  readonly waitedMilliseconds: number;
  /** Until the response was written, or its stream ended. */
  readonly milliseconds: number;
}

export interface Observer {
  /** The request starts. `end` follows in any case. */
  begin(request: Observed): void;
  end(finished: Finished): void;
  /** A WebSocket was opened. Call the returned function with its close code. */
  openSession(handshake: Observed): (code: number) => void;
}

/** For a client that left before its response: not a status of HTTP; proxies use it in logs. */
export const clientLeftStatus = 499;

/** For what the listener does not handle: handshakes, and bytes that are not a request. */
export function observeAtOnce(request: Observed, sent: Sent, observer: Observer): void {
  observer.begin(request);
  observer.end({
    request,
    ...sent,
    madeStatus: sent.status,
    waitedMilliseconds: 0,
    milliseconds: 0,
  });
}

/** Of a message without an `HttpRequest`; of bytes that are no request, only the `Origin`. */
export type Head = Pick<IncomingMessage, 'headers' | 'socket'> & {
  readonly method?: string | undefined;
};

/** The values to observe of it. */
export function toObserved(
  { method = '', headers, socket }: Head,
  id: string,
  endpoint?: Observed['endpoint'],
): Observed {
  const { remoteAddress = '' } = socket;
  return { id, method, endpoint, remoteAddress, header: (name) => headers[name]?.toString() };
}
