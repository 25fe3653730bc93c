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

/** The request that a reply belongs to. */
export interface Asked {
  readonly id: string;
  readonly incoming: Incoming;
  readonly response: ServerResponse;
  /** The client still waits for `100 Continue`: its body will not come. */
  readonly awaited: boolean;
  readonly body: RequestBody | undefined;
}

/** What all answers of a server share. */
export interface Outlet {
  readonly log: Log;
  readonly pool: MemoryPool;
  readonly cors: Cors | undefined;
  /** The server is stopping: connections end with their answers. */
  readonly closing: boolean;
}

/**
 * Gives back how many bytes of content it sends; 0 of a stream. Throws, before anything is written,
 * where Node refuses the headers or the pool has no room.
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
  // A rest that is short is read and thrown away.
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
  // RFC 9110 §8.6: these two have no content, and so no length.
  if (reply.status !== 204 && reply.status !== 304) headers.push('Content-Length', String(length));
  response.writeHead(reply.status, headers);
  // As bytes: a socket counts the characters of a text that waits, not the memory it takes.
  const content = isLarge && typeof body === 'string' ? Buffer.from(body) : body;
  if (unread) endSlowly(content, asked);
  else endWhole(content, response);
  // Most clients take an answer at once: then there is nothing to hold, and nobody to listen to.
  if (room !== undefined && response.writableLength > 0) {
    room.set(length);
    releaseAfter(response, room);
  }
  return asked.incoming.method === 'HEAD' ? 0 : length;
}

/** When the client has taken the answer, or is gone; also where its headers are refused. */
function releaseAfter(response: ServerResponse, room: Reservation): void {
  response.once('close', () => room.release());
}

/**
 * Head and body in one write. `end(body)` alone corks the socket and adds an empty piece behind
 * them, and two pieces are gathered by a slower way: a tenth of a small answer.
 */
function endWhole(body: string | Buffer | undefined, response: ServerResponse): void {
  const { socket } = response;
  // Over a closed socket it must not seem sent: Node would take the next request for this one.
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
  // A client that has ended its side may still read, or be gone: the stream knows what it expects.
  const { socket } = incoming;
  const tell = (): void => void body.emit('peerEnd');
  socket.once('end', tell);
  pipeline(body, response, (error) => {
    socket.off('end', tell);
    if (error) response.destroy();
    // A client that leaves in the middle, or does not read, is no fault of the server.
    const isTheirs = error instanceof ClientGone || error?.code === 'ERR_STREAM_PREMATURE_CLOSE';
    if (error && !isTheirs)
      log('error', 'answer cut short', { requestId: id, reason: error.message });
  });
}

/** A small rest of a body is read away by Node, so that the connection can be used again. */
const restBytesMax = 65_536;
/** Of a longer one so much is read before the connection is closed, for so long in all. */
const lingerBytesMax = 8_388_608;
const lingerMillisecondsMax = 2_000;
/** A client that sends nothing for so long, or is to send no more, is not waited for. */
const lingerSilenceMilliseconds = 1_000;

function hasUnreadBody({ incoming, awaited, body }: Asked): boolean {
  if (incoming.complete || body === undefined) return false;
  return awaited || !(Number(incoming.headers['content-length']) <= restBytesMax);
}

/**
 * Answers first and closes then, but not at once: a socket closed over unread bytes is reset, and
 * the reset can overtake the answer (RFC 9112 §9.6). So the rest is read before the end, up to a
 * bound; a client that sends more than that has to wait, and so has the time to see the answer.
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
