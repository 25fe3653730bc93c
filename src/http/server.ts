/** A `node:http` server with the limits on, around a listener: what Node leaves open, shut here. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import type { Log } from '../log.ts';
import { refuse } from './bare-answer.ts';
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
    headersTimeout: config.headersTimeoutSeconds * 1000,
    requestTimeout: config.requestTimeoutSeconds * 1000,
    keepAliveTimeout: config.keepAliveSeconds * 1000,
    // Node looks for late requests every 30 s, unless told otherwise.
    connectionsCheckingInterval: 1000,
    // Judged by `checkMessage`, which knows HTTP/1.0 and answers in our shape.
    requireHostHeader: false,
    noDelay: true,
  });
  server.maxConnections = config.connectionsMax;
  server.setTimeout(config.idleTimeoutSeconds * 1000);
  const sockets = watchSockets(server);

  server.on('request', (incoming, response) => listener.answer(incoming, response));
  server.on('checkContinue', (incoming, response) => listener.answer(incoming, response, true));
  server.on('checkExpectation', (incoming, response) =>
    listener.refuseExpectation(incoming, response),
  );
  server.on('upgrade', deps.upgrade);
  server.on('connect', (_incoming, socket) => {
    refuse(socket, new AppError('method_not_allowed', 'CONNECT is not served.', { allow: 'GET' }));
  });
  server.on('clientError', (error, socket) => {
    // An answer that has begun cannot be taken back: its connection just ends.
    const begun = [...listener.active].some((response) => {
      return response.socket === socket && response.headersSent;
    });
    if (begun) socket.destroy();
    else refuseBadMessage(error, socket);
  });

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
  const busy = new Set([...listener.active].map((response) => response.socket));
  await beforeEnd();
  for (const socket of sockets) if (!busy.has(socket)) socket.destroySoon();
  await closed;
  clearTimeout(deadline);
}

/** Bytes that are no HTTP request, too long headers, or a request that took too long. */
function refuseBadMessage(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
    socket.destroy();
    return;
  }
  refuse(socket, toAppError(error));
}

function toAppError(error: NodeJS.ErrnoException & { rawPacket?: Buffer }): AppError {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new AppError('request_timeout', 'The request did not arrive in time.');
  }
  if (error.code !== 'HPE_HEADER_OVERFLOW') {
    return new AppError('malformed_request', 'This is not a valid HTTP/1.1 request.');
  }
  // Without a line end so far, it is the first line that is too long.
  return error.rawPacket?.includes('\n') === false
    ? new AppError('target_too_long', 'The request target is too long.')
    : new AppError('headers_too_large', 'The headers are too large.');
}
