/** Creates a `node:http` server around a listener, with limits that Node leaves off by default. */

import { once } from 'node:events';
import { createServer, Server, type ServerResponse } from 'node:http';
import { type AddressInfo, type Socket, Server as TcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import type { ConnectionMemory, MemoryPool } from '../../memory-pool.ts';
import type { Endpoint } from '../message.ts';
import { Connection } from './connection.ts';
import type { Listener } from './exchange.ts';
import {
  headerLinesMax,
  Incoming,
  isUpgrade,
  type Message,
  OlderIncoming,
  unknownMethod,
} from './incoming.ts';

/** The socket has a listener for `error`, so that a reset does not end the process. */
export type UpgradeListener = (incoming: Incoming, socket: Duplex, handshake: Handshake) => void;

export interface Handshake {
  readonly head: Buffer;
  readonly memory: ConnectionMemory;
  /** Answers with the error, and ends the connection. `endpoint`: if the path is a route. */
  readonly refuse: (error: AppError, endpoint?: Pick<Endpoint, 'route'>) => void;
}

interface HttpServerDeps {
  readonly listener: Listener;
  readonly upgrade: UpgradeListener;
  /** Limits the memory of requests while they are served. */
  readonly pool: MemoryPool;
  readonly config: Pick<Config, 'connectionsMax' | 'idleTimeoutSeconds' | 'keepAliveSeconds'>;
  /** How long requests in flight may take after the stop; default: six seconds. */
  readonly drainSeconds?: number;
}

/** Limit for request line and headers together: Node's default. */
const headerBytesMax = 16_384;
/** Time limit for the headers, which usually arrive in one packet. */
const headersTimeoutSeconds = 10;
/** With `settle` before it, well below the ten seconds after which Docker kills a process. */
const defaultDrainSeconds = 6;

export class HttpServer {
  readonly #listener: Listener;
  readonly #drainSeconds: number;
  readonly #server: Server;
  /** The open connections. */
  readonly #connections = new Map<Socket, Connection>();

  constructor({
    listener,
    upgrade,
    pool,
    config,
    drainSeconds = defaultDrainSeconds,
  }: HttpServerDeps) {
    this.#listener = listener;
    this.#drainSeconds = drainSeconds;
    const connections = this.#connections;
    const server = createNodeServer(config);
    this.#server = server;
    const timer = setInterval(() => {
      for (const connection of connections.values()) connection.sweep(config.idleTimeoutSeconds);
    }, 1_000).unref();
    server.once('close', () => clearInterval(timer));

    server.on('connection', (socket: Socket) => {
      const connection = new Connection(socket, pool);
      connections.set(socket, connection);
      // Node keeps the address once it was asked for: the log needs it after the client has left.
      void socket.remoteAddress;
      // Node removes its own listener at an upgrade; without one a reset would end the process.
      socket.on('error', ignoreReset);
      socket.once('close', () => {
        connections.delete(socket);
        connection.end();
      });
    });
    // Node can still emit the other events for a connection that is closed.
    const respond =
      (expectation: Message['expectation']) => (incoming: Incoming, outgoing: ServerResponse) => {
        const connection = connections.get(incoming.socket);
        if (connection) void listener.respond(connection, { incoming, outgoing, expectation });
      };
    server.on('request', respond('none'));
    server.on('checkContinue', respond('continue'));
    server.on('checkExpectation', respond('other'));
    // From Node 26 the stream of an upgrade with a body is not the socket itself.
    server.on('upgrade', (incoming: Incoming, socket: Duplex, head: Buffer) => {
      const connection = connections.get(incoming.socket);
      connection?.afterResponses(() => {
        connection.isUpgraded = true;
        const refuse: Handshake['refuse'] = (error, endpoint) =>
          listener.refuse(socket, error, { incoming, endpoint });
        upgrade(incoming, socket, { head, memory: connection.memory, refuse });
      });
    });
    // Always a TCP socket: Node's types of the next two events are wider for other servers.
    server.on('connect', ({ headers: { origin }, socket }) => {
      const error = new AppError('method_not_allowed', 'CONNECT is not served.', {
        headers: ['Allow', 'GET'],
      });
      const incoming = { headers: { origin }, socket };
      connections.get(socket)?.afterResponses(() => listener.refuse(socket, error, { incoming }));
    });
    server.on('clientError', (error, socket) => {
      const connection = connections.get(socket as Socket);
      if (connection) refuseBadMessage(error, connection, listener);
    });
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Resolves with the address when the server listens. Rejects with Node's error. */
  async listen(port: number, host: string): Promise<AddressInfo> {
    this.#server.listen(port, host === '' ? undefined : host);
    await once(this.#server, 'listening');
    return this.#server.address() as AddressInfo; // a TCP server has one
  }

  /**
   * Stops listening. Each open connection may send one more request and ends with its response, so
   * that no connection is reset while a client sends. Resolves when all are closed (upgraded
   * sockets are not counted), or after `millisecondsMax`.
   */
  async settle(millisecondsMax: number): Promise<void> {
    this.#listener.announceStop();
    // `close` of the HTTP server would also destroy idle connections, with requests in transit, and
    // has no option against it. A TCP server in front of it would go without its time limits.
    TcpServer.prototype.close.call(this.#server);
    const end = performance.now() + millisecondsMax;
    const isOpen = ({ isUpgraded }: Connection): boolean => !isUpgraded;
    while (performance.now() < end && [...this.#connections.values()].some(isOpen)) await pause(20);
  }

  /**
   * Requests in flight may take `drainSeconds`; idle connections are closed at once. `beforeEnd` is
   * awaited in between: it closes upgraded sockets.
   */
  async close(beforeEnd: () => Promise<void>): Promise<void> {
    this.#listener.drain();
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    const deadline = setTimeout(() => {
      for (const socket of this.#connections.keys()) socket.destroy();
    }, this.#drainSeconds * 1000);
    await beforeEnd();
    for (const connection of this.#connections.values()) {
      // A response that began before the stop has promised to keep the connection open.
      connection.afterResponses(() => connection.socket.destroySoon());
    }
    await closed;
    clearTimeout(deadline);
  }
}

function createNodeServer(config: HttpServerDeps['config']): Server {
  const options = {
    IncomingMessage: 'shouldUpgradeCallback' in new Server() ? Incoming : OlderIncoming,
    shouldUpgradeCallback: isUpgrade, // not in Node's types
    maxHeaderSize: headerBytesMax,
    headersTimeout: Math.min(headersTimeoutSeconds, config.idleTimeoutSeconds) * 1000,
    // A body may take as long as it needs at the minimum data rate.
    requestTimeout: 0,
    keepAliveTimeout: config.keepAliveSeconds * 1000,
    // Node's default is to check the timeout of headers every 30 s.
    connectionsCheckingInterval: 500,
    // `checkMessage` checks it: it allows HTTP/1.0 without Host, and reports errors as in R5.
    requireHostHeader: false,
    noDelay: true,
    // Repeated headers show, of which Node would keep the first (`checkMessage`).
    joinDuplicateHeaders: true,
  };
  const server = createServer(options);
  server.maxConnections = config.connectionsMax;
  // Node drops further header lines as they arrive, because each takes memory in addition to its
  // bytes. `checkMessage` refuses a message with one too many.
  server.maxHeadersCount = headerLinesMax + 1;
  // A client may half-close the connection after its request and wait for the response.
  Object.assign(server, { httpAllowHalfOpen: true }); // public, but not in Node's types
  return server;
}

/** Node destroys a socket after an error. */
function ignoreReset(): void {
  // There is no client to answer.
}

/** Invalid bytes, headers that are too long, or a request that took too long. */
function refuseBadMessage(error: BadMessage, connection: Connection, listener: Listener): void {
  const { socket } = connection;
  if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
    // A closing socket has a time limit of its own; the parser fails on every packet.
    if (!socket.writableEnded) socket.destroy();
    return;
  }
  // The parser fails on every further packet, so nothing more is read. Node resumes reading when an
  // earlier response continues.
  socket.pause();
  if (connection.isRefused) return;
  connection.isRefused = true;
  const { pending } = connection;
  const origin = pending?.req.complete === false ? pending.req.headers.origin : findOrigin(error);
  const incoming = { headers: { origin }, socket };
  connection.refuse(() => listener.refuse(socket, toAppError(error), { incoming }));
}

/** `Origin` of a head that is refused (R6a), as far as its packet holds it: Node keeps no other. */
function findOrigin({ rawPacket, bytesParsed = 0 }: BadMessage): string | undefined {
  const text = rawPacket?.toString('latin1') ?? '';
  const before = bytesParsed < 4 ? -1 : text.lastIndexOf('\r\n\r\n', bytesParsed - 4);
  const [head = ''] = text.slice(before === -1 ? 0 : before + 4).split('\r\n\r\n', 1);
  return /^origin:[\t ]*(\S+)[\t ]*\r?$/im.exec(head)?.[1];
}

type BadMessage = NodeJS.ErrnoException & { rawPacket?: Buffer; bytesParsed?: number };

function toAppError({ code, rawPacket, bytesParsed }: BadMessage): AppError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new AppError('request_timeout', 'The request did not arrive in time.');
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    // Without a line end so far, the request line is too long.
    return rawPacket?.subarray(0, bytesParsed).includes('\n') === false
      ? new AppError('target_too_long', 'The request target is too long.')
      : new AppError('headers_too_large', 'The headers are too large.');
  }
  if (code === 'HPE_INVALID_URL') {
    const message =
      'The request target is not valid: it begins with /, and all but ASCII is percent-encoded.';
    return new AppError('malformed_request', message);
  }
  if (code === 'HPE_INVALID_METHOD' && anyRequest.test(lineAt(rawPacket, bytesParsed))) {
    return unknownMethod();
  }
  return otherVersion.test(lineAt(rawPacket, 0))
    ? new AppError('http_version_not_supported', 'This server speaks HTTP/1.1.')
    : new AppError('malformed_request', 'This is not a valid HTTP/1.1 request.');
}

/** A valid request line except for its version, of which the parser knows few. */
const otherVersion = /^[A-Z]+ \S+ HTTP\/(?!1\.[01]$)[0-9]\.[0-9]$/;

/** A valid request line, whatever its method (R6a): the parser knows some methods only. */
const anyRequest = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP\/1\.[01]$/;

/** The line of the packet that has the byte at this place. */
function lineAt(packet: Buffer | undefined, at = 0): string {
  const text = packet?.toString('latin1') ?? '';
  const end = text.indexOf('\r', at);
  return end === -1 ? '' : text.slice(at === 0 ? 0 : text.lastIndexOf('\n', at) + 1, end);
}
