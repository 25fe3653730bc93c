/**
 * A response → bytes. The first row that applies says how the content is written:
 *
 * | if                                       | then                                              |
 * | ---------------------------------------- | ------------------------------------------------- |
 * | the client has left                      | nothing is written; a stream is destroyed         |
 * | the content is a stream, method HEAD     | the head alone; the stream is destroyed           |
 * | the content is a stream                  | chunked or with its length, with back-pressure    |
 * | the rest of the body is not read         | whole; the connection closes after the rest came  |
 * | the content has more than 128 KiB        | in pieces of 128 KiB, as the client takes them    |
 * | otherwise                                | whole, in the same packet as the head             |
 *
 * A content of more than 16 KiB is refused with 503 if the pool has no memory for it, and counts in
 * the pool until the client has taken it. In an iteration of the event loop that makes many
 * responses they are held for up to a millisecond and sent together (`createResponseBatch`).
 */

import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import type { Log } from '../../log.ts';
import { poolIsFull, uncountedBytesMax } from '../../memory-pool.ts';
import type { Cors } from '../origins.ts';
import { toConditional } from '../etag.ts';
import type { HttpRequest, HttpResponse } from '../message.ts';
import { toProblem } from '../problem.ts';
import { ClientGone } from './body.ts';
import { endAfterRest } from './linger.ts';
import { clientLeftStatus, type Observer } from './observe.ts';

/** What all responses of a server share. */
export interface SendDeps {
  readonly log: Log;
  /** Undefined: pages of other origins cannot read responses. */
  readonly cors?: Cors | undefined;
  /** Notified of each finished request. */
  readonly observer?: Observer | undefined;
}

interface SendContext extends SendDeps {
  /** The server is stopping: each connection ends with its response. */
  readonly closing: boolean;
}

type Send = (request: HttpRequest, response: HttpResponse) => void;

/** The function sends a response or, if that fails, the reason. It releases the request. */
export function createSend(context: SendContext): Send {
  const { log, observer } = context;
  return (request, response) => {
    let sent = response;
    let bytes: number;
    try {
      sent = toConditional(response, request);
      bytes = write(request, sent, context);
    } catch (error) {
      // No memory, a failed condition, or headers that Node refuses: nothing was written yet.
      if (response.body instanceof Readable) response.body.destroy();
      sent = toProblem(error, request.id, log);
      bytes = write(request, sent, context);
    }
    request.release();
    if (observer !== undefined) report(request, sent, { bytes, observer });
  };
}

interface Report {
  readonly bytes: number;
  readonly observer: Observer;
}

/** Notifies the observer when the response was written. */
function report(request: HttpRequest, sent: HttpResponse, { bytes, observer }: Report): void {
  const { incoming, outgoing, startedAt } = request;
  const { status: madeStatus, headers, error, body } = sent;
  const status = outgoing.headersSent ? madeStatus : clientLeftStatus;
  const waitedMilliseconds = performance.now() - startedAt;
  const finished = {
    request,
    status,
    madeStatus,
    headers,
    error,
    bytes,
    waitedMilliseconds,
    milliseconds: waitedMilliseconds,
  };
  if (!outgoing.headersSent || !(body instanceof Readable)) {
    observer.end(finished);
    return;
  }
  // The response has begun; its stream ends later.
  const { socket } = incoming;
  const before = socket.bytesWritten;
  outgoing.once('close', () => {
    const milliseconds = performance.now() - startedAt;
    observer.end({ ...finished, bytes: socket.bytesWritten - before, milliseconds });
  });
}

/**
 * Returns the bytes of the content, 0 for a stream. Throws, before anything is written, if Node
 * refuses the headers or the pool has no memory.
 */
function write(request: HttpRequest, response: HttpResponse, context: SendContext): number {
  const { incoming, outgoing } = request;
  const { status, body } = response;
  if (outgoing.destroyed || outgoing.headersSent) {
    if (body instanceof Readable) body.destroy();
    outgoing.destroy();
    return 0;
  }
  let unread = false;
  if (!incoming.complete && request.body !== undefined) {
    unread = request.body.isLeftUnread;
    // The rest of the body is read and discarded.
    request.body.leave();
  }
  const headers = ['X-Request-Id', request.id, ...noSniff, ...response.headers];
  // R6b: without it a cache may keep whatever it likes, such as a 404 (RFC 9111 §4.2.2).
  if (!headers.includes('Cache-Control')) headers.push('Cache-Control', 'no-store');
  context.cors?.addTo(headers, incoming.headers.origin);
  // Node skips the rest of the packet after an upgrade that is ignored.
  const isLast = context.closing || unread || incoming.isUpgradeIgnored === true;
  if (isLast && !response.headers.includes('Connection')) headers.push('Connection', 'close');
  if (body instanceof Readable) {
    const { streamBytes, streamBytesMax = 0 } = response;
    if (streamBytes !== undefined) headers.push('Content-Length', String(streamBytes));
    const reservation = request.memory.open();
    if (streamBytesMax > 0 && !reservation.grow(streamBytesMax)) throw poolIsFull();
    outgoing.once('close', () => reservation.release());
    response.reservation?.holdFor(request.memory);
    // Node does not set it by the header: what waits behind such a stream is bounded by it.
    if (headers.includes('Connection')) outgoing.shouldKeepAlive = false;
    outgoing.writeHead(status, headers);
    writeStream(body, request, context.log);
    return 0;
  }
  const length = body === undefined ? 0 : Buffer.byteLength(body);
  const isHead = request.method === 'HEAD';
  const isLarge = length > uncountedBytesMax && !isHead;
  const reservation = isLarge ? request.memory.open() : undefined;
  if (reservation?.canGrow(length) === false) throw poolIsFull();
  // RFC 9110 §8.6: these two statuses have no Content-Length.
  if (status !== 204 && status !== 304) headers.push('Content-Length', String(length));
  outgoing.writeHead(status, headers);
  // Encoded, because a socket counts a queued string in characters, not in bytes.
  const content = isLarge && typeof body === 'string' ? Buffer.from(body) : body;
  if (unread) endAfterRest(content, incoming, outgoing);
  else if (isLarge && length > pieceBytes) endInPieces(content as Buffer, outgoing);
  else endWhole(content, outgoing);
  // Usually the socket takes the whole response at once, and no memory is held.
  if (reservation !== undefined && outgoing.writableLength > 0) {
    reservation.set(length);
    outgoing.once('close', () => reservation.release());
  }
  return isHead ? 0 : length;
}

const noSniff = ['X-Content-Type-Options', 'nosniff'];

/**
 * Writes head and body at once. `end(body)` would cork the socket and add an empty chunk, and Node
 * writes several chunks by a slower path: that takes a tenth of the time of a small response.
 */
function endWhole(body: string | Buffer | undefined, outgoing: ServerResponse): void {
  const { socket } = outgoing;
  // On a closed socket the response must not seem sent: Node would start the next request.
  if (body === undefined || socket?.writable !== true) {
    outgoing.end(body);
    return;
  }
  socket.cork();
  outgoing.write(body);
  socket.uncork();
  outgoing.end();
}

/** A client that takes 64 KiB/s takes a piece in two seconds. */
const pieceBytes = 131_072;

/** In pieces, because Node does not tell how much of one large write a client has taken (R39). */
function endInPieces(body: Buffer, outgoing: ServerResponse, start = 0): void {
  let next = start;
  while (next < body.length) {
    const hasRoom = outgoing.write(body.subarray(next, next + pieceBytes));
    next += pieceBytes;
    if (hasRoom || next >= body.length) continue;
    outgoing.once('drain', () => endInPieces(body, outgoing, next));
    return;
  }
  outgoing.end();
}

function writeStream(body: Readable, request: HttpRequest, log: Log): void {
  const { id, incoming, outgoing } = request;
  if (request.method === 'HEAD') {
    body.destroy();
    outgoing.end();
    return;
  }
  // A client that half-closes may still read or be gone; the stream decides.
  const { socket } = incoming;
  const tell = (): void => void body.emit('peerEnd');
  // The client may have left while the response was made.
  if (socket.readableEnded) tell();
  else socket.once('end', tell);
  pipeline(body, outgoing, (error) => {
    socket.off('end', tell);
    if (!error) return;
    outgoing.destroy();
    // A client that leaves or does not read is not a fault of the server.
    if (error instanceof ClientGone || error.code === 'ERR_STREAM_PREMATURE_CLOSE') return;
    log('error', 'response cut short', { requestId: id, reason: error.message });
  });
}

/** An iteration with more responses than this counts as busy, and the next one probably is too. */
const fewResponsesMax = 8;
/** At most this many responses are held … */
const heldMax = 32;
/** … and for at most this long, plus the time to make the last of them. */
const heldMillisecondsMax = 1;

/**
 * Sends responses that become ready in one iteration of the event loop together, if there are many,
 * and those of the next one with them: requests on the same connections come in two halves, of
 * which one is read while the other is answered. Waking a waiting peer makes a write twice as
 * expensive; a proxy that waits for many responses is then woken once for all of them. Measured
 * with small responses on 64 connections: 0.96 of a bare server's CPU per request, 1.04 without
 * batches; posts that are created on 32 connections, one iteration alone: 1.10 of two.
 */
export function createResponseBatch(send: Send) {
  let held: Parameters<Send>[] = [];
  let heldSince = 0;
  let count = 0;
  let isBusy = false;
  /** True in the second iteration of those whose responses go together. */
  let isSecond = false;

  /** Sends the held responses now. */
  const flush = (): void => {
    const responses = held;
    held = [];
    for (const [request, response] of responses) send(request, response);
  };
  const end = (): void => {
    isSecond = isBusy && !isSecond;
    if (isSecond) {
      setImmediate(end);
      return;
    }
    isBusy = count > fewResponsesMax;
    count = 0;
    flush();
  };
  return {
    flush,
    /**
     * Sends a response, now or, where iterations are busy, by the end of the next one. Keeps the
     * order. `send` must not throw.
     */
    send(request: HttpRequest, response: HttpResponse): void {
      count += 1;
      if (count === 1) setImmediate(end);
      if (!isBusy) {
        send(request, response);
        return;
      }
      const at = performance.now();
      if (held.length === 0) heldSince = at;
      held.push([request, response]);
      if (held.length >= heldMax || at - heldSince > heldMillisecondsMax) flush();
    },
  };
}
