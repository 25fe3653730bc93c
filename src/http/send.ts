/** A reply → bytes: one `writeHead` with the length, one `end`; streams with back-pressure. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import type { Log } from '../log.ts';
import { ClientGone, hasBody } from './body.ts';
import type { HttpReply } from './message.ts';
import type { Member, Roster } from './roster.ts';

/** The request that a reply belongs to. */
export interface Asked extends Member {
  readonly id: string;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** The client still waits for `100 Continue`: its body will not come. */
  readonly awaited: boolean;
  /** No request of the connection is answered after this one. */
  readonly isLast: boolean;
}

/** What all answers of a server share. */
export interface Outlet {
  readonly log: Log;
  /** Requests whose answers take longer than one turn of the loop. */
  readonly active: Pick<Roster<Asked>, 'add' | 'delete'>;
  /** The server is stopping: connections end with their answers. */
  readonly closing: boolean;
}

/** `asked` is not active yet; it is from here on where its answer does not leave at once. */
export function sendReply(reply: HttpReply, asked: Asked, outlet: Outlet): void {
  const { response } = asked;
  const { body } = reply;
  if (response.destroyed || response.headersSent) {
    if (body instanceof Readable) body.destroy();
    destroyAnswer(response);
    return;
  }
  const unread = hasUnreadBody(asked);
  const headers = ['X-Request-Id', asked.id, 'X-Content-Type-Options', 'nosniff', ...reply.headers];
  if ((outlet.closing || unread || asked.isLast) && !reply.headers.includes('Connection')) {
    headers.push('Connection', 'close');
  }
  if (typeof body === 'object' && body instanceof Readable) {
    response.writeHead(reply.status, headers);
    sendStream(body, asked, outlet);
    return;
  }
  const length = body === undefined ? 0 : Buffer.byteLength(body);
  // RFC 9110 §8.6: these two have no content, and so no length.
  if (reply.status !== 204 && reply.status !== 304) headers.push('Content-Length', String(length));
  response.writeHead(reply.status, headers);
  if (unread) endSlowly(body, asked, outlet);
  else endWhole(body, response);
}

/**
 * Head and body in one write. `end(body)` alone corks the socket and adds an empty piece behind
 * them, and two pieces are gathered by a slower way: a tenth of a small answer.
 */
function endWhole(body: string | Buffer | undefined, response: ServerResponse): void {
  const { socket } = response;
  // Without a socket it waits for the answers before it, and what waits already is not overtaken.
  // Over a closed one it must not seem sent: Node would take the next request for this one.
  const isFree = socket?.writable === true && socket.writableLength === 0;
  if (body === undefined || !isFree) {
    response.end(body);
    return;
  }
  socket.cork();
  response.write(body);
  socket.uncork();
  response.end();
}

/**
 * Ends the connection in the middle of an answer. One that waits behind another has no socket yet:
 * Node 24 forgets there that it was to be destroyed, and the connection would stay for ever.
 */
export function destroyAnswer(response: ServerResponse): void {
  if (response.socket === null) response.once('socket', (socket: Socket) => void socket.destroy());
  response.destroy();
}

function sendStream(body: Readable, asked: Asked, outlet: Outlet): void {
  const { id, incoming, response } = asked;
  if (incoming.method === 'HEAD') {
    body.destroy();
    response.end();
    return;
  }
  outlet.active.add(asked);
  // A client that has ended its side may still read, or be gone: the stream knows what it expects.
  const { socket } = incoming;
  const tell = (): void => void body.emit('peerEnd');
  socket.once('end', tell);
  // An answer that waits behind another one of its connection has no socket yet, and so never
  // hears that it has gone.
  const leave = (): void => {
    body.destroy();
    outlet.active.delete(asked);
  };
  socket.once('close', leave);
  pipeline(body, response, (error) => {
    socket.off('end', tell).off('close', leave);
    if (error) destroyAnswer(response);
    // A client that leaves in the middle, or does not read, is no fault of ours.
    const isTheirs = error instanceof ClientGone || error?.code === 'ERR_STREAM_PREMATURE_CLOSE';
    if (error && !isTheirs) {
      outlet.log('error', 'answer cut short', { requestId: id, reason: error.message });
    }
    outlet.active.delete(asked);
  });
}

/** A small rest of a body is read away by Node, so that the connection can be used again. */
const restBytesMax = 65_536;
/** Of a longer one so much is read before the connection is closed, for so long in all. */
const lingerBytesMax = 8_388_608;
const lingerMillisecondsMax = 2_000;
/** A client that sends nothing for so long, or is to send no more, is not waited for. */
const lingerSilenceMilliseconds = 500;

function hasUnreadBody({ incoming, awaited }: Asked): boolean {
  if (incoming.complete || !hasBody(incoming)) return false;
  return awaited || !(Number(incoming.headers['content-length']) <= restBytesMax);
}

/**
 * Answers first and closes then, but not at once: a socket closed over unread bytes is reset, and
 * the reset can overtake the answer (RFC 9112 §9.6). So the rest is read before the end, up to a
 * bound; a client that sends more than that has to wait, and so has the time to see the answer.
 */
function endSlowly(body: string | Buffer | undefined, asked: Asked, outlet: Outlet): void {
  const { incoming, response } = asked;
  outlet.active.add(asked);
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
    else destroyAnswer(response);
    outlet.active.delete(asked);
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
}
