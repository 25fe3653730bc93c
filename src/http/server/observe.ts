/**
 * Each request, once it is over: the one place that tells the log and the metrics of it. A listener
 * without an `Observe` does none of this.
 */

import { Readable } from 'node:stream';
import type { HttpReply } from '../message.ts';
import type { Request } from './request.ts';

/** A request that is over. */
export interface Finished {
  readonly request: Request;
  /** 499 where the client left before its answer. */
  readonly status: number;
  /** Of the content; of a stream also those of its head and chunks. */
  readonly bytes: number;
  /** From the request's turn until its answer began. */
  readonly waitedMilliseconds: number;
  /** Until the answer was handed over, or its stream was at its end. */
  readonly milliseconds: number;
}

export type Observe = (finished: Finished) => void;

/** No status of the protocol: what proxies write in their logs. */
const clientLeft = 499;

/** To be called when an answer has been handed over, or has begun where it is a stream. */
export function observeAnswer(request: Request, reply: HttpReply, observe: Observe): void {
  const { response, method } = request;
  const waitedMilliseconds = performance.now() - request.startedAt;
  const { body } = reply;
  if (!response.headersSent) observeLeft(request, observe);
  else if (typeof body === 'object' && body instanceof Readable) {
    observeStream(request, reply.status, { observe, waitedMilliseconds });
  } else {
    const bytes = body === undefined || method === 'HEAD' ? 0 : Buffer.byteLength(body);
    const { status } = reply;
    observe({ request, status, bytes, waitedMilliseconds, milliseconds: waitedMilliseconds });
  }
}

/** To be called for a client that has left before its answer was made. */
export function observeLeft(request: Request, observe: Observe): void {
  const milliseconds = performance.now() - request.startedAt;
  const waitedMilliseconds = milliseconds;
  observe({ request, status: clientLeft, bytes: 0, waitedMilliseconds, milliseconds });
}

function observeStream(
  request: Request,
  status: number,
  {
    observe,
    waitedMilliseconds,
  }: { readonly observe: Observe; readonly waitedMilliseconds: number },
): void {
  const { socket } = request.incoming;
  const before = socket.bytesWritten;
  request.response.once('close', () => {
    const milliseconds = performance.now() - request.startedAt;
    const bytes = socket.bytesWritten - before;
    observe({ request, status, bytes, waitedMilliseconds, milliseconds });
  });
}
