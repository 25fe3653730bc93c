/** A reply → bytes: one `writeHead` with the length, one `end`; streams with back-pressure. */

import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import type { Log } from '../../log.ts';
import { type MemoryPool, type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import { ClientGone, type RequestBody } from './body.ts';
import type { Cors } from '../cors.ts';
import type { Incoming } from './incoming.ts';
import type { HttpReply } from '../message.ts';
import { overloaded } from './request.ts';

/** The request to answer. */
export interface Asked {
  readonly id: string;
  readonly incoming: Incoming;
  readonly response: ServerResponse;
  /** The client still waits for `100 Continue`, so it will not send its body. */
  readonly awaited: boolean;
  readonly body: RequestBody | undefined;
}

/** What all replies of a server share. */
export interface Outlet {
  readonly log: Log;
  readonly pool: MemoryPool;
  readonly cors: Cors | undefined;
  /** The server is stopping: each connection ends with its response. */
  readonly closing: boolean;
}

/**
 * Sends a reply. Returns the bytes of its content, 0 for a stream. Throws, before anything is
 * written, if Node refuses the headers or the pool has no room.
 */
export function sendReply(reply: HttpReply, asked: Asked, outlet: Outlet): number {
  const { response } = asked;
  const { body } = reply;
  if (response.destroyed || response.headersSent) {
    if (body instanceof Readable) body.destroy();
    response.destroy();
    return 0;
  }
  const unread = hasUnreadBody(asked);
  // The rest of the body is read and discarded.
  if (!asked.incoming.complete) asked.body?.leave();
  const headers = ['X-Request-Id', asked.id, 'X-Content-Type-Options', 'nosniff', ...reply.headers];
  outlet.cors?.addTo(headers, asked.incoming.headers.origin);
  const isLast = outlet.closing || unread || asked.incoming.isUpgradeIgnored;
  if (isLast && !reply.headers.includes('Connection')) headers.push('Connection', 'close');
  if (typeof body === 'object' && body instanceof Readable) {
    if (reply.streamBytes !== undefined) headers.push('Content-Length', String(reply.streamBytes));
    try {
      const room = outlet.pool.open();
      if (!room.grow(reply.streamBytesMax ?? 0)) throw overloaded();
      releaseAfter(response, room);
      response.writeHead(reply.status, headers);
    } catch (error) {
      body.destroy();
      throw error;
    }
    sendStream(body, asked, outlet.log);
    return 0;
  }
  const length = body === undefined ? 0 : Buffer.byteLength(body);
  const isLarge = length > uncountedBytesMax;
  const room = isLarge ? (reply.pool ?? outlet.pool).open(() => response.destroy()) : undefined;
  if (room?.hasRoom(length) === false) throw overloaded();
  // RFC 9110 §8.6: these two statuses have no Content-Length.
  if (reply.status !== 204 && reply.status !== 304) headers.push('Content-Length', String(length));
  response.writeHead(reply.status, headers);
  // Encoded, because a socket counts a queued string in characters, not in bytes.
  const content = isLarge && typeof body === 'string' ? Buffer.from(body) : body;
  if (unread) endSlowly(content, asked);
  else endWhole(content, response);
  // Usually the socket takes the whole response at once, and no memory is held.
  if (room !== undefined && response.writableLength > 0) {
    room.set(length);
    releaseAfter(response, room);
  }
  return asked.incoming.method === 'HEAD' ? 0 : length;
}

/** Releases when the client has read the response or is gone, also if the headers are refused. */
function releaseAfter(response: ServerResponse, room: Reservation): void {
  response.once('close', () => room.release());
}

/**
 * Writes head and body at once. `end(body)` would cork the socket and add an empty chunk, and Node
 * writes several chunks by a slower path: that takes a tenth of the time of a small response.
 */
function endWhole(body: string | Buffer | undefined, response: ServerResponse): void {
  const { socket } = response;
  // On a closed socket it must not seem sent: Node would start the next request.
  if (body === undefined || socket?.writable !== true) {
    response.end(body);
    return;
  }
  socket.cork();
  response.write(body);
  socket.uncork();
  response.end();
}

function sendStream(body: Readable, asked: Asked, log: Log): void {
  const { id, incoming, response } = asked;
  if (incoming.method === 'HEAD') {
    body.destroy();
    response.end();
    return;
  }
  // A client that half-closed may still read or be gone; the stream decides.
  const { socket } = incoming;
  const tell = (): void => void body.emit('peerEnd');
  socket.once('end', tell);
  pipeline(body, response, (error) => {
    socket.off('end', tell);
    if (error) response.destroy();
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

function hasUnreadBody({ incoming, awaited, body }: Asked): boolean {
  if (incoming.complete || body === undefined) return false;
  return awaited || !(Number(incoming.headers['content-length']) <= restBytesMax);
}

/**
 * Sends the response, and closes the connection later: closing a socket with unread input resets
 * it, and the reset can overtake the response (RFC 9112 §9.6). The rest is therefore read first, up
 * to a limit; a client that sends more is paused, which gives it time to read the response.
 */
function endSlowly(body: string | Buffer | undefined, asked: Asked): void {
  const { incoming, response } = asked;
  if (body === undefined) response.flushHeaders();
  else response.write(body);
  let rest = 0;
  let finished = false;
  const finish = (): void => {
    if (finished) return;
    finished = true;
    clearTimeout(timer);
    incoming.removeAllListeners('data').pause();
    if (incoming.socket.writable) response.end();
    else response.destroy();
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
