/** A `node:http` server with the limits on, around a listener: what Node leaves open, shut here. */

import { createServer, type Server } from 'node:http';
import { type AddressInfo, type Socket, Server as TcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import { endGently } from './raw-response.ts';
import { Connection } from './connection.ts';
import { headerLinesMax, Incoming } from './incoming.ts';
import type { Listener } from './listener.ts';

/** The socket has a listener of `error`: a reset does not end the process. */
export type UpgradeListener = (incoming: Incoming, socket: Duplex, head: Buffer) => void;

export interface HttpServerDeps {
  readonly listener: Listener;
  readonly upgrade: UpgradeListener;
  /** Bounds what requests hold while they are served. */
  readonly pool: MemoryPool;
  readonly config: Pick<
    Config,
    'connectionsMax' | 'requestTimeoutSeconds' | 'idleTimeoutSeconds' | 'keepAliveSeconds'
  >;
  /** What requests in flight get to finish after the stop; eight seconds where left out. */
  readonly drainSeconds?: number;
}

export interface HttpServer {
  /** Resolves with the place once it listens; rejects with Node's error where it cannot. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** Open at this moment. */
  readonly connections: number;
  /**
   * Stops listening. A connection that is open has one more request answered, and ends with it: so
   * none is reset on which a client is just sending. Resolves when all have ended, sockets that are
   * no HTTP any more not counted, and after so long in any case.
   */
  settle(millisecondsMax: number): Promise<void>;
  /**
   * Answers in flight get `drainSeconds` to finish; connections without one end at once.
   * `beforeEnd` is awaited in between: it ends what is no HTTP any more.
   */
  close(beforeEnd: () => Promise<void>): Promise<void>;
}

/** Request line and headers together: Node's own default. */
const headerBytesMax = 16_384;
/** Until the headers of a request are complete: they come in one packet or a few. */
const headersTimeoutSeconds = 10;
/** Docker kills a process ten seconds after it has asked it to stop. */
const defaultDrainSeconds = 8;

export function createHttpServer(deps: HttpServerDeps): HttpServer {
  const { listener, pool, config, drainSeconds = defaultDrainSeconds } = deps;
  const server = createServer({
    IncomingMessage: Incoming,
    maxHeaderSize: headerBytesMax,
    // Node refuses to start with the first of these two above the second.
    headersTimeout: Math.min(headersTimeoutSeconds, config.requestTimeoutSeconds) * 1000,
    requestTimeout: config.requestTimeoutSeconds * 1000,
    keepAliveTimeout: config.keepAliveSeconds * 1000,
    // Node's default is to look for late requests every 30 s.
    connectionsCheckingInterval: 500,
    // `checkMessage` checks it: it knows HTTP/1.0, and its errors have the shape of R5.
    requireHostHeader: false,
    noDelay: true,
  });
  server.maxConnections = config.connectionsMax;
  // Node leaves out what comes beyond, also of a head that never ends: each line takes memory
  // beside its bytes. `checkMessage` refuses a message with so many.
  server.maxHeadersCount = headerLinesMax;
  // A client that has sent its request whole may end its side and wait for the answer.
  Object.assign(server, { httpAllowHalfOpen: true }); // public, but not in Node's types
  const connections = watchConnections(server, pool);
  const idle = { connections, pool, limit: config.idleTimeoutSeconds * 1000 };
  const timer = setInterval(limitIdleTime, 1_000, idle).unref();
  server.once('close', () => clearInterval(timer));
  // One that is closed already may still have something said of it.
  const of = (socket: Socket): Connection =>
    connections.get(socket) ?? new Connection(socket, pool);

  server.on('request', (incoming, response) => {
    listener.answer(of(incoming.socket), { incoming, response, expectsContinue: false });
  });
  server.on('checkContinue', (incoming, response) => {
    listener.answer(of(incoming.socket), { incoming, response, expectsContinue: true });
  });
  server.on('checkExpectation', (incoming, response) => {
    const message = { incoming, response, expectsContinue: false };
    listener.refuseExpectation(of(incoming.socket), message);
  });
  // The three below get the socket of the connection: Node's types are wider for other servers.
  server.on('upgrade', (incoming: Incoming, socket: Duplex, head: Buffer) => {
    const connection = of(socket as Socket);
    connection.afterAnswersAlone(() => {
      connection.isUpgraded = true;
      deps.upgrade(incoming, socket, head);
    });
  });
  server.on('connect', (_incoming, socket) => {
    const error = new AppError('method_not_allowed', 'CONNECT is not served.', { allow: 'GET' });
    of(socket as Socket).afterAnswersAlone(() => listener.refuse(socket as Socket, error));
  });
  server.on('clientError', (error, socket) => {
    refuseBadMessage(error, of(socket as Socket), listener);
  });

  return {
    get connections() {
      return connections.size;
    },
    listen: (port, host) => listen(server, port, host),
    settle(millisecondsMax) {
      listener.announceStop();
      return settle(server, connections, millisecondsMax);
    },
    close: (beforeEnd) => drain({ server, connections, listener, drainSeconds, beforeEnd }),
  };
}

function listen(server: Server, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host === '' ? undefined : host, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo); // a TCP server has one
    });
  });
}

type Connections = Map<Socket, Connection>;

function watchConnections(server: Server, pool: MemoryPool): Connections {
  const connections: Connections = new Map();
  server.on('connection', (socket: Socket) => {
    connections.set(socket, new Connection(socket, pool));
    // Node takes its own listener away with an upgrade: a reset would then end the process.
    socket.on('error', ignoreReset);
    socket.once('close', () => connections.delete(socket));
  });
  return connections;
}

/** A socket with an error is destroyed by Node. */
function ignoreReset(): void {
  // Nobody is left to be answered.
}

async function settle(server: Server, connections: Connections, max: number): Promise<void> {
  // That of HTTP would also destroy idle connections, and what is on its way on them.
  TcpServer.prototype.close.call(server);
  const end = performance.now() + max;
  const isOpen = ({ isUpgraded }: Connection): boolean => !isUpgraded;
  while (performance.now() < end && [...connections.values()].some(isOpen)) await pause(20);
}

interface IdleLimit {
  readonly connections: Connections;
  readonly pool: MemoryPool;
  /** In milliseconds. */
  readonly limit: number;
}

/** Idle time of a client that is waited for while the pool is more than half used up. */
const scarceMilliseconds = 5_000;

/**
 * Sets the idle timeout of connections with an answer that is due. Node would set it, and take it
 * back, for every request; most are answered before the timer fires and need none. Between two
 * requests, and before one is whole, other limits count.
 */
function limitIdleTime({ connections, pool, limit }: IdleLimit): void {
  const isScarce = pool.bytes > pool.bytesMax / 2;
  for (const connection of connections.values()) {
    const { socket } = connection;
    connection.tidy();
    if (connection.isUpgraded) continue;
    const { due } = connection;
    if (due === undefined && socket.writableLength === 0) continue;
    // Not one whose answer is being made: that may take longer while there is much to do.
    const isAwaited = socket.writableLength > 0 || due?.req.complete === false;
    const milliseconds = isScarce && isAwaited ? Math.min(limit, scarceMilliseconds) : limit;
    if (socket.timeout !== milliseconds) socket.setTimeout(milliseconds);
  }
}

interface Drain {
  readonly server: Server;
  readonly connections: Connections;
  readonly listener: Listener;
  readonly drainSeconds: number;
  readonly beforeEnd: () => Promise<void>;
}

async function drain(stop: Drain): Promise<void> {
  const { server, connections, listener, drainSeconds, beforeEnd } = stop;
  listener.drain();
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  const deadline = setTimeout(() => {
    for (const socket of connections.keys()) socket.destroy();
  }, drainSeconds * 1000);
  await beforeEnd();
  for (const connection of connections.values()) {
    // An answer that began before the stop has promised to keep the connection open.
    connection.afterAnswers(() => connection.socket.destroySoon());
  }
  await closed;
  clearTimeout(deadline);
}

/** Bytes that are no HTTP request, too long headers, or a request that took too long. */
function refuseBadMessage(error: BadMessage, connection: Connection, listener: Listener): void {
  const { socket, due } = connection;
  if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
    // One that is being ended has a time limit of its own; the parser fails on every packet.
    if (!socket.writableEnded) socket.destroy();
    return;
  }
  // The parser fails on every packet that follows: nothing more is read. Node reads on all the same
  // when an answer in front goes on.
  socket.pause();
  if (connection.isRefused) return;
  connection.isRefused = true;
  const refuseNow = (): void => listener.refuse(socket, toAppError(error));
  if (due === undefined || due.req.complete) connection.afterAnswers(refuseNow);
  else connection.insteadOfDue(() => (due.headersSent ? endGently(socket) : refuseNow()));
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
