/** A `node:http` server with the limits on, around a listener: what Node leaves open, shut here. */

import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import type { Log } from '../log.ts';
import { endGently, refuse } from './bare-answer.ts';
import { Incoming } from './incoming.ts';
import type { Listener } from './listener.ts';

export type UpgradeListener = (incoming: Incoming, socket: Duplex, head: Buffer) => void;

export interface HttpServerDeps {
  readonly listener: Listener;
  readonly upgrade: UpgradeListener;
  readonly log: Log;
  readonly config: Pick<
    Config,
    | 'connectionsMax'
    | 'headerBytesMax'
    | 'headersTimeoutSeconds'
    | 'requestTimeoutSeconds'
    | 'idleTimeoutSeconds'
    | 'keepAliveSeconds'
    | 'drainSeconds'
  >;
}

export interface HttpServer {
  /** Resolves with the port once it listens; rejects with Node's error where it cannot. */
  listen(port: number, host: string): Promise<number>;
  /**
   * Answers in flight get `drainSeconds` to finish; connections without one end at once.
   * `beforeEnd` is awaited in between: it ends what is no HTTP any more.
   */
  close(beforeEnd: () => Promise<void>): Promise<void>;
}

export function createHttpServer(deps: HttpServerDeps): HttpServer {
  const { listener, config } = deps;
  const server = createServer({
    IncomingMessage: Incoming,
    maxHeaderSize: config.headerBytesMax,
    // Node refuses to start with the first of these two above the second.
    headersTimeout: Math.min(config.headersTimeoutSeconds, config.requestTimeoutSeconds) * 1000,
    requestTimeout: config.requestTimeoutSeconds * 1000,
    keepAliveTimeout: config.keepAliveSeconds * 1000,
    // Node looks for late requests every 30 s, unless told otherwise.
    connectionsCheckingInterval: 500,
    // Judged by `checkMessage`, which knows HTTP/1.0 and answers in our shape.
    requireHostHeader: false,
    noDelay: true,
  });
  server.maxConnections = config.connectionsMax;
  // Node would leave out the headers beyond 2,000, and `checkMessage` would judge a message that
  // the parser read in another way. `maxHeaderSize` bounds them all.
  server.maxHeadersCount = 0;
  // A client that has sent its request whole may end its side and wait for the answer.
  Object.assign(server, { httpAllowHalfOpen: true }); // public, but not in Node's types
  const sockets = watchSockets(server);
  const upgraded = new WeakSet<Duplex>();
  const silence = { sockets, upgraded, listener, limit: config.idleTimeoutSeconds * 1000 };
  const look = setInterval(limitSilence, 1_000, silence).unref();
  server.once('close', () => clearInterval(look));

  server.on('request', (incoming, response) => listener.answer(incoming, response));
  server.on('checkContinue', (incoming, response) => listener.answer(incoming, response, true));
  server.on('checkExpectation', (incoming, response) =>
    listener.refuseExpectation(incoming, response),
  );
  server.on('upgrade', (incoming: Incoming, socket: Duplex, head: Buffer) => {
    listener.flush();
    upgraded.add(socket);
    deps.upgrade(incoming, socket, head);
  });
  server.on('connect', (_incoming, socket) => {
    listener.flush();
    const error = new AppError('method_not_allowed', 'CONNECT is not served.', { allow: 'GET' });
    refuse(socket, error, listener.nextId());
  });
  const refused = new WeakSet<Duplex>();
  server.on('clientError', (error, socket) =>
    refuseBadMessage(error, socket, { listener, refused }),
  );

  return {
    listen: (port, host) => listen(server, port, host),
    close: (beforeEnd) => drain({ server, sockets, listener, config, beforeEnd }),
  };
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host === '' ? undefined : host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port); // a TCP server has one
    });
  });
}

/** Node ends a connection only once it has seen a request on it: silent ones are ours to end. */
function watchSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

interface Silence {
  readonly sockets: ReadonlySet<Socket>;
  /** They have pings of their own. */
  readonly upgraded: WeakSet<Duplex>;
  readonly listener: Listener;
  /** In milliseconds. */
  readonly limit: number;
}

/**
 * Sets the limit on silence for connections in the middle of something. Node would set it, and
 * take it back, for every request; most are answered before anybody looks, and need none. Between
 * two requests, and before one is whole, other limits count.
 */
function limitSilence({ sockets, upgraded, listener, limit }: Silence): void {
  const busy = new Set(Array.from(listener.active, ({ response }) => response.req.socket));
  for (const socket of sockets) {
    if (upgraded.has(socket) || socket.timeout === limit) continue;
    if (busy.has(socket) || socket.writableLength > 0) socket.setTimeout(limit);
  }
}

interface Drain {
  readonly server: Server;
  readonly sockets: ReadonlySet<Socket>;
  readonly listener: Listener;
  readonly config: Pick<Config, 'drainSeconds'>;
  readonly beforeEnd: () => Promise<void>;
}

async function drain({ server, sockets, listener, config, beforeEnd }: Drain): Promise<void> {
  listener.drain();
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  const deadline = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, config.drainSeconds * 1000);
  await beforeEnd();
  for (const socket of sockets) endOnceAnswered(socket, listener);
  await closed;
  clearTimeout(deadline);
}

/** An answer that began before the stop has promised to keep the connection open. */
function endOnceAnswered(socket: Socket, listener: Listener): void {
  const response = answerUnderWay(socket, listener);
  if (response === undefined) socket.destroySoon();
  else response.once('close', () => endOnceAnswered(socket, listener));
}

function answerUnderWay(socket: Duplex, listener: Listener): ServerResponse | undefined {
  for (const { response } of listener.active) {
    if (response.req.socket === socket && !response.destroyed) return response;
  }
  return undefined;
}

interface Refusing {
  readonly listener: Listener;
  /** Those whose refusal waits for an answer: the parser fails on every packet that follows. */
  readonly refused: WeakSet<Duplex>;
}

/** Bytes that are no HTTP request, too long headers, or a request that took too long. */
function refuseBadMessage(error: BadMessage, socket: Duplex, refusing: Refusing): void {
  const { listener, refused } = refusing;
  listener.flush();
  if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
    // One that is being ended has a time limit of its own; the parser fails on every packet.
    if (!socket.writableEnded) socket.destroy();
    return;
  }
  const response = answerUnderWay(socket, listener);
  if (response?.req.complete === true) {
    // The fault is in what follows a whole request: that one gets its answer first.
    if (refused.has(socket)) return;
    refused.add(socket);
    response.once('close', () => {
      refused.delete(socket);
      refuseBadMessage(error, socket, refusing);
    });
  } else if (response?.headersSent === true) {
    endGently(socket);
  } else {
    refuse(socket, toAppError(error), listener.nextId());
  }
}

type BadMessage = NodeJS.ErrnoException & { rawPacket?: Buffer; bytesParsed?: number };

function toAppError({ code, rawPacket, bytesParsed }: BadMessage): AppError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new AppError('request_timeout', 'The request did not arrive in time.');
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    // Without a line end so far, it is the first line that is too long.
    return rawPacket?.subarray(0, bytesParsed).includes('\n') === false
      ? new AppError('target_too_long', 'The request target is too long.')
      : new AppError('headers_too_large', 'The headers are too large.');
  }
  return otherVersion.test(firstLine(rawPacket))
    ? new AppError('http_version_not_supported', 'This server speaks HTTP/1.1.')
    : new AppError('malformed_request', 'This is not a valid HTTP/1.1 request.');
}

/** A request line that is right but for its version: the parser knows few of them. */
const otherVersion = /^[A-Z]+ \S+ HTTP\/(?!1\.[01]$)[0-9]\.[0-9]$/;

function firstLine(packet: Buffer | undefined): string {
  const end = packet?.indexOf('\r') ?? -1;
  return end === -1 ? '' : (packet?.toString('latin1', 0, end) ?? '');
}
