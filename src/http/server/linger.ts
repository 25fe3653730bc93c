/**
 * Closing without a reset: closing a socket with unread input resets it, and the reset can overtake
 * the response (RFC 9112 §9.6). What the client still sends is therefore read first, for a while.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import type { Duplex } from 'node:stream';

/** A client that is silent for this long, or need not send more, is not waited for. */
const silenceMilliseconds = 1_000;
/** Of the rest of a body this much is read, for at most this long, before the connection closes. */
const restBytesMax = 8_388_608;
const restMillisecondsMax = 2_000;

/** For a socket without a message: writes what is queued, ends, and closes after a second. */
export function endGently(socket: Duplex): void {
  socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), silenceMilliseconds);
  socket.once('close', () => clearTimeout(timer));
}

/**
 * For a response to a request whose body is incomplete: sends it, reads the rest of the body, and
 * ends the response. A client that sends more than the limit is paused, which gives it time to read
 * the response.
 */
export function endAfterRest(
  content: string | Buffer | undefined,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): void {
  if (content === undefined) outgoing.flushHeaders();
  else outgoing.write(content);
  const end = performance.now() + restMillisecondsMax;
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), silenceMilliseconds);
  let rest = 0;
  incoming.on('data', (piece: Buffer) => {
    rest += piece.length;
    if (performance.now() < end) timer.refresh();
    if (rest > restBytesMax) incoming.removeAllListeners('data').pause();
  });
  incoming.resume();
  incoming.socket.resume();
  finished(incoming, { writable: false, signal: silence.signal }, () => {
    clearTimeout(timer);
    incoming.removeAllListeners('data').pause();
    if (incoming.socket.writable) outgoing.end();
    else outgoing.destroy();
  });
}
