/** A reply → bytes: one `writeHead` with the length, one `end`; streams with back-pressure. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import type { Log } from '../log.ts';
import { hasBody } from './body.ts';
import type { HttpReply } from './message.ts';

export interface Sending {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** The server is stopping: this connection ends with this answer. */
  readonly closing: boolean;
  /** The client still waits for `100 Continue`: its body will not come. */
  readonly awaited: boolean;
  readonly log: Log;
  /** Called once, when nothing more will be written. */
  readonly done: () => void;
}

export function sendReply(reply: HttpReply, sending: Sending): void {
  const { response } = sending;
  const { body } = reply;
  if (response.destroyed || response.headersSent) {
    if (body instanceof Readable) body.destroy();
    response.destroy();
    sending.done();
    return;
  }
  const unread = hasUnreadBody(sending);
  const headers = ['X-Request-Id', sending.requestId, 'X-Content-Type-Options', 'nosniff'];
  headers.push(...reply.headers);
  if ((sending.closing || unread) && !reply.headers.includes('Connection')) {
    headers.push('Connection', 'close');
  }
  if (body instanceof Readable) {
    response.writeHead(reply.status, headers);
    sendStream(body, sending);
    return;
  }
  const length = body === undefined ? 0 : Buffer.byteLength(body);
  // RFC 9110 §8.6: these two have no content, and so no length.
  if (reply.status !== 204 && reply.status !== 304) headers.push('Content-Length', String(length));
  response.writeHead(reply.status, headers);
  if (unread) {
    endSlowly(body, sending);
  } else {
    response.end(body);
    sending.done();
  }
}

function sendStream(body: Readable, sending: Sending): void {
  const { response, requestId, log, done } = sending;
  if (sending.incoming.method === 'HEAD') {
    body.destroy();
    response.end();
    done();
    return;
  }
  pipeline(body, response, (error) => {
    // A client that leaves in the middle is no fault of ours.
    if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') {
      log('error', 'answer cut short', { requestId, reason: error.message });
    }
    done();
  });
}

/** A small rest of a body is read away by Node, so that the connection can be used again. */
const restBytesMax = 65_536;
const restMilliseconds = 500;

function hasUnreadBody({ incoming, awaited }: Sending): boolean {
  if (incoming.complete || !hasBody(incoming)) return false;
  return awaited || !(Number(incoming.headers['content-length']) <= restBytesMax);
}

/**
 * Answers first and closes then, but not at once: a socket closed over unread bytes is reset, and
 * the reset can overtake the answer. So a little of the rest is read before the end.
 */
function endSlowly(body: string | Buffer | undefined, sending: Sending): void {
  const { incoming, response } = sending;
  if (body === undefined) response.flushHeaders();
  else response.write(body);
  let rest = 0;
  let finished = false;
  const finish = (): void => {
    if (finished) return;
    finished = true;
    clearTimeout(timer);
    incoming.removeAllListeners('data').pause();
    response.end();
    sending.done();
  };
  const timer = setTimeout(finish, restMilliseconds);
  incoming.once('close', finish);
  incoming.once('end', finish);
  incoming.on('data', (chunk: Buffer) => {
    rest += chunk.length;
    if (rest > restBytesMax) finish();
  });
  incoming.resume();
}
