/** A response → bytes: one `writeHead` with the length, one `end`; streams with back-pressure. */

import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import type { Log } from '../../log.ts';
import { type MemoryPool, type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import { ClientGone, poolIsFull } from './body.ts';
import type { Cors } from '../cors.ts';
import type { HttpResponse } from '../message.ts';
import type { Request } from './request.ts';

/** What all responses of a server share. */
export interface SendContext {
  readonly log: Log;
  readonly pool: MemoryPool;
  readonly cors: Cors | undefined;
  /** The server is stopping: each connection ends with its response. */
  readonly closing: boolean;
}

/**
 * Sends a response. Returns the bytes of its content, 0 for a stream. Throws, before anything is
 * written, if Node refuses the headers or the pool has no room; the caller then destroys a stream.
 */
export function sendResponse(
  response: HttpResponse,
  request: Request,
  context: SendContext,
): number {
  const { outgoing } = request;
  const isHead = request.incoming.method === 'HEAD';
  const { body } = response;
  if (outgoing.destroyed || outgoing.headersSent) {
    if (body instanceof Readable) body.destroy();
    outgoing.destroy();
    return 0;
  }
  const unread = hasUnreadBody(request);
  // The rest of the body is read and discarded.
  if (!request.incoming.complete) request.body?.leave();
  const { status } = response;
  const headers = ['X-Request-Id', request.id, ...noSniff, ...response.headers];
  context.cors?.addTo(headers, request.incoming.headers.origin);
  const isLast = context.closing || unread || request.incoming.isUpgradeIgnored;
  if (isLast && !response.headers.includes('Connection')) headers.push('Connection', 'close');
  if (typeof body === 'object' && body instanceof Readable) {
    const { streamBytes } = response;
    if (streamBytes !== undefined) headers.push('Content-Length', String(streamBytes));
    const room = context.pool.open();
    if (!room.grow(response.streamBytesMax ?? 0)) throw poolIsFull();
    releaseAfter(outgoing, room);
    outgoing.writeHead(status, headers);
    sendStream(body, request, context.log);
    return 0;
  }
  const length = body === undefined ? 0 : Buffer.byteLength(body);
  const isLarge = length > uncountedBytesMax && !isHead;
  const room = isLarge ? (response.pool ?? context.pool).open() : undefined;
  if (room?.hasRoom(length) === false) throw poolIsFull();
  // RFC 9110 §8.6: these two statuses have no Content-Length.
  if (status !== 204 && status !== 304) headers.push('Content-Length', String(length));
  outgoing.writeHead(status, headers);
  // Encoded, because a socket counts a queued string in characters, not in bytes.
  const content = isLarge && typeof body === 'string' ? Buffer.from(body) : body;
  if (unread) endSlowly(content, request);
  else if (isLarge && length > pieceBytes) endInPieces(content as Buffer, outgoing);
  else endWhole(content, outgoing);
  // Usually the socket takes the whole response at once, and no memory is held.
  if (room !== undefined && outgoing.writableLength > 0) {
    room.set(length);
    releaseAfter(outgoing, room);
  }
  return isHead ? 0 : length;
}

const noSniff = ['X-Content-Type-Options', 'nosniff'];

/** Releases when the client has read the response or is gone, also if the headers are refused. */
function releaseAfter(outgoing: ServerResponse, room: Reservation): void {
  outgoing.once('close', () => room.release());
}

/**
 * Writes head and body at once. `end(body)` would cork the socket and add an empty chunk, and Node
 * writes several chunks by a slower path: that takes a tenth of the time of a small response.
 */
function endWhole(body: string | Buffer | undefined, outgoing: ServerResponse): void {
  const { socket } = outgoing;
  // On a closed socket it must not seem sent: Node would start the next request.
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

/** Piece by piece: what a client has taken of one large write cannot be seen (R39). */
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

function sendStream(body: Readable, request: Request, log: Log): void {
  const { id, incoming, outgoing } = request;
  if (incoming.method === 'HEAD') {
    body.destroy();
    outgoing.end();
    return;
  }
  // A client that half-closed may still read or be gone; the stream decides.
  const { socket } = incoming;
  const tell = (): void => void body.emit('peerEnd');
  // It may have left while the response was made.
  if (socket.readableEnded) tell();
  else socket.once('end', tell);
  pipeline(body, outgoing, (error) => {
    socket.off('end', tell);
    if (error) outgoing.destroy();
    // A client that leaves or does not read is not a fault of the server.
    const isTheirs = error instanceof ClientGone || error?.code === 'ERR_STREAM_PREMATURE_CLOSE';
    if (error && !isTheirs)
      log('error', 'answer cut short', { requestId: id, reason: error.message });
  });
}

/** Up to this size Node reads the rest of a body, so that the connection can be reused. */
const restBytesMax = 65_536;
/** Of a longer rest this much is read, for at most this long, before the connection is closed. */
const lingerBytesMax = 8_388_608;
const lingerMillisecondsMax = 2_000;
/** A client that is silent for this long, or need not send more, is not waited for. */
const lingerSilenceMilliseconds = 1_000;

function hasUnreadBody({ incoming, expectation, body }: Request): boolean {
  if (incoming.complete || body === undefined) return false;
  return (
    expectation === 'continue' || !(Number(incoming.headers['content-length']) <= restBytesMax)
  );
}

/**
 * Sends the response, and closes the connection later: closing a socket with unread input resets
 * it, and the reset can overtake the response (RFC 9112 §9.6). The rest is therefore read first, up
 * to a limit; a client that sends more is paused, which gives it time to read the response.
 */
function endSlowly(body: string | Buffer | undefined, request: Request): void {
  const { incoming, outgoing } = request;
  if (body === undefined) outgoing.flushHeaders();
  else outgoing.write(body);
  let rest = 0;
  let finished = false;
  const finish = (): void => {
    if (finished) return;
    finished = true;
    clearTimeout(timer);
    incoming.removeAllListeners('data').pause();
    if (incoming.socket.writable) outgoing.end();
    else outgoing.destroy();
  };
  const end = performance.now() + lingerMillisecondsMax;
  const timer = setTimeout(finish, lingerSilenceMilliseconds);
  incoming.once('close', finish);
  incoming.once('end', finish);
  incoming.on('data', (chunk: Buffer) => {
    rest += chunk.length;
    if (performance.now() < end) timer.refresh();
    if (rest > lingerBytesMax) incoming.removeAllListeners('data').pause();
  });
  incoming.resume();
  incoming.socket.resume();
}
