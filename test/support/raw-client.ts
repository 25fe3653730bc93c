/** HTTP by hand over a TCP socket: for bytes that no client library would send. */

import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import type { TestContext } from 'node:test';
import { isLong } from './long.ts';

export interface RawResponse {
  readonly status: number;
  /** Lower-case names; the lines of a repeated one joined by a comma. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

export type RawClient = Awaited<ReturnType<typeof connectRaw>>;
/** A port, or the server on it as soon as it is there. */
export type Served = number | Promise<{ readonly port: number }>;
/** Text (written as latin1), bytes, or header lines. */
type Sent = string | Buffer | readonly string[];

/** A connection that says nothing for so long has been forgotten; at length a database may restart. */
export const waitSeconds = isLong ? 60 : 20;

/** A connection that ends with the test. */
export async function connectRaw(context: Pick<TestContext, 'after'>, to: Served) {
  // The server may have taken it long before the client hears of that.
  const opened = performance.now();
  const port = typeof to === 'number' ? to : (await to).port;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  context.after(() => socket.destroy());
  // Doubled when it is full: a response of megabytes is not copied with each of its pieces.
  let space: Buffer = Buffer.alloc(65_536);
  let length = 0;
  let received = space.subarray(0, 0);
  let closed = false;
  const news = new EventEmitter();
  const close = (): void => {
    closed = true;
    news.emit('news');
  };
  // A reset is one of the ways in which a server ends a connection.
  socket.on('error', close).on('end', close).on('close', close);
  socket.on('data', (chunk) => {
    const from = length - received.length;
    if (length + chunk.length > space.length) {
      space = Buffer.concat([space], 2 * (length + chunk.length));
    }
    length += chunk.copy(space, length);
    received = space.subarray(from, length);
    news.emit('news');
  });

  /** Looks again after each piece of news, until `look` finds something. */
  const wait = async <T>(what: string, look: () => T | undefined): Promise<T> => {
    const signal = AbortSignal.timeout(waitSeconds * 1_000);
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await once(news, 'news', { signal }).catch(() => {
        throw new Error(`Not within ${waitSeconds} s: ${what}; ${describe(received)}`);
      });
    }
  };

  const send = (bytes: Sent): void => {
    if (Buffer.isBuffer(bytes)) socket.write(bytes);
    else socket.write(typeof bytes === 'string' ? bytes : toLines(bytes), 'latin1');
  };
  /** The next answer; `HEAD` has no body whatever its headers say. Rejects where none comes. */
  const response = (method = 'GET'): Promise<RawResponse> =>
    wait('response', () => {
      const read = readResponse(received, method, closed);
      if (read !== undefined) received = received.subarray(read.end);
      else if (closed) throw new Error(`The connection ended: ${describe(received)}`);
      return read?.response;
    });
  return {
    socket,
    send,
    response,
    /** Sends it, and gives the next answer. */
    ask(bytes: Sent, method?: string): Promise<RawResponse> {
      send(bytes);
      return response(method);
    },
    /** Resolves with the milliseconds since it was asked for once the server has ended it. */
    ended: () => wait('end', () => (closed ? performance.now() - opened : undefined)),
    /** No more bytes from this side; answers still come. */
    halfClose: () => void socket.end(),
    destroy: () => void socket.destroy(),
  };
}

/** One request on a connection of its own: its response, then the end of the connection. */
export async function ask(context: Pick<TestContext, 'after'>, to: Served, request: Sent) {
  return (await connectRaw(context, to)).ask(request);
}

/** A request without a body, as `send` writes it; several of them can be sent as one text. */
export function get(path: string, ...headers: readonly string[]): string {
  return toLines([`GET ${path} HTTP/1.1`, 'Host: a', ...headers]);
}

/** Header lines as an array: the empty line at their end is added. */
function toLines(lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function describe(bytes: Buffer): string {
  return JSON.stringify(bytes.subarray(0, 200).toString('latin1'));
}

/** The response at the start of the bytes, and where it ends; undefined while it is not whole. */
function readResponse(bytes: Buffer, method: string, closed: boolean) {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const [first = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const start = headEnd + 4;
  const found = (body: Buffer, end: number) => ({ response: { status, headers, body }, end });
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) {
    return found(Buffer.alloc(0), start);
  }
  if (headers.get('transfer-encoding') === 'chunked') {
    const read = readChunks(bytes, start);
    return read && found(read.body, read.end);
  }
  const declared = headers.get('content-length');
  if (declared === undefined) {
    return closed ? found(bytes.subarray(start), bytes.length) : undefined;
  }
  const end = start + Number(declared);
  return bytes.length >= end ? found(bytes.subarray(start, end), end) : undefined;
}

function readChunks(bytes: Buffer, start: number) {
  const chunks: Buffer[] = [];
  for (let at = start; ;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16);
    const next = lineEnd + 2 + size + 2;
    if (bytes.length < next) return undefined;
    if (size === 0) return { body: Buffer.concat(chunks), end: next };
    chunks.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = next;
  }
}
