/** Requests as bytes, one connection for a few of them, and what comes back. */

import { connect } from 'node:net';
import type { Random } from './fuzz-random.js';
import type { FuzzBody, FuzzRequest } from './fuzz-seeds.js';

/** A request, and after an upgrade its frames, as bytes. */
export function toBytes(request: FuzzRequest, random: Random): Buffer {
  const { method, target, headers, messages } = request;
  const body = toBodyBytes(request.body);
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: fuzz.example'];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  const chunked = body.length > 0 && random.oneIn(4);
  if (chunked) lines.push('Transfer-Encoding: chunked');
  else if (request.body.kind !== 'none') lines.push(`Content-Length: ${body.length}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  const frames = (messages ?? []).map((message) => toFrame(message, random));
  if (messages !== undefined) frames.push(closeFrame);
  return Buffer.concat([head, chunked ? toChunks(body, random) : body, ...frames]);
}

function toBodyBytes(body: FuzzBody): Buffer {
  if (body.kind === 'none') return Buffer.alloc(0);
  if (body.kind === 'json') return Buffer.from(toText(body.value));
  const parts = body.parts.map(
    ({ head, content }) => `--${body.boundary}\r\n${head}\r\n\r\n${content}\r\n`,
  );
  return Buffer.from(`${parts.join('')}--${body.boundary}--\r\n`);
}

/** Nothing is a body too. */
function toText(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value);
}

function toChunks(body: Buffer, random: Random): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const piece = body.subarray(at, at + 1 + random.below(body.length));
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
    at += piece.length;
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
}

const textFrame = 0x81;
/** RFC 6455 §5.5.1 with status 1000, under a mask of zeros. */
const closeFrame = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]);

/** A masked frame (RFC 6455 §5.2); now and then of an odd kind. The mask of zeros is a legal one. */
function toFrame(message: unknown, random: Random): Buffer {
  const payload = Buffer.from(toText(message));
  const kind = random.oneIn(30) ? random.below(256) : textFrame;
  const head =
    payload.length < 126
      ? [kind, 0x80 | payload.length]
      : [kind, 0x80 | 126, payload.length >> 8, payload.length & 0xff];
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), payload]);
}

/** A connection that takes longer than this for its responses hangs. */
const hangsAfterMilliseconds = 300_000;
const responseBytesMax = 64 * 1024;

export interface WireResponse {
  /** How it begins, as latin1: enough for what it says of itself. */
  readonly text: string;
  readonly statuses: readonly number[];
}

/**
 * Sends it all, ends this side, and reads until the server ends the other. With `upgrades` this
 * side is ended once a response or a message came: a WebSocket is nothing without it. An event stream has no end:
 * it is left. Rejects where nothing ends.
 */
export function exchange(port: number, bytes: Buffer, upgrades: boolean): Promise<WireResponse> {
  return new Promise((resolve, reject) => {
    let text = '';
    const statuses: number[] = [];
    const socket = connect({ port, host: '127.0.0.1' });
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text, statuses });
    };
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no end after ${hangsAfterMilliseconds} ms, only ${text.slice(0, 200)}`));
    }, hangsAfterMilliseconds);
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      // A status line may be cut in two: it is looked for once it is whole.
      const seen = Math.max(0, text.length - 12);
      if (text.length < responseBytesMax) {
        text += chunk;
        for (const [, status] of text.slice(seen).matchAll(statusLine)) {
          statuses.push(Number(status));
        }
      }
      if (eventStream.test(chunk)) finish();
      else if (upgrades && firstMessage.test(text)) socket.end();
    });
    // A reset is one of the ways in which a server ends a connection.
    socket.on('error', finish).on('close', finish);
    if (upgrades) socket.write(bytes);
    else socket.end(bytes);
  });
}

const statusLine = /HTTP\/1\.1 (\d{3}) /g;
/** Behind the head of a 101, or any other response. */
const firstMessage = /^HTTP\/1\.1 (?:101 [^]*?\r\n\r\n[^]|(?!101)\d)/;
const eventStream = /^content-type: text\/event-stream/im;
