/**
 * The door for WebSockets at `/graphql`: lets sockets in, keeps count of them, ends dead ones.
 * Nothing else touches a WebSocket. Loaded with the first upgrade, because `ws` and `graphql`
 * take as long to load as the rest of the start.
 */

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type RawData, type WebSocket } from 'ws';
import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import type { Answer } from '../../http/answer-cache.ts';
import { refuse } from '../../http/bare-answer.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import type { EventForm } from '../events/shared-event.ts';
import { Connection } from './connection.ts';
import { brace, toFrame, toSingleFrame } from './frames.ts';
import { checkHandshake, chooseProtocol } from './handshake.ts';
import type { OperationDeps } from './operation.ts';
import { cutReason, type Closing, type Protocol } from './protocol.ts';
import type { SocketPort } from './socket-port.ts';

export interface WebSocketDoorDeps extends OperationDeps {
  readonly config: Config;
  /** What operations, answers and events of all sockets take. */
  readonly pool: MemoryPool;
  /** Milliseconds of any clock that only goes forward. */
  readonly now: () => number;
}

export interface WebSocketDoor {
  /** For `upgrade` of a `node:http` server. Never throws; a refusal is a whole HTTP answer. */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Lets nobody in any more, says 1001 to everybody, and resolves when all are gone. */
  close(): Promise<void>;
  /** Open sockets. */
  readonly size: number;
}

/** What a peer gets to answer a close frame, before its socket is destroyed. */
const closeMilliseconds = 5_000;
/** The same while the server stops. */
const stopMilliseconds = 1_500;
/** Frames of one message; most clients send one. */
const fragmentsMax = 256;
/** Packets that one frame may come in: 256 KiB take some two hundred of the usual size. */
const packetsMax = 1_024;
/** However many sockets share the memory for queues, each may have this much waiting. */
const queueBytesMin = 65_536;
/** R30, also for one that goes on asking and does not read the answers. */
const behind: Closing = { code: 1013, reason: 'The client does not read what it asked for' };

export function createWebSocketDoor(deps: WebSocketDoorDeps): WebSocketDoor {
  const { config } = deps;
  const peers = new Set<Peer>();
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: config.wsMessageBytesMax,
    // Each takes memory beside its bytes, and a client can send each byte by itself.
    maxFragments: fragmentsMax,
    maxBufferedChunks: packetsMax,
    // One message a turn: a client that sends a thousand in one packet does not hold up the rest.
    allowSynchronousEvents: false,
    closeTimeout: closeMilliseconds,
    handleProtocols: (names: Set<string>) => chooseProtocol(names)?.name ?? false,
  };
  const server = new WebSocketServer(options);
  // Without a listener `ws` would answer in HTML.
  server.on('wsClientError', (_error, socket) => {
    refuse(socket, new AppError('malformed_request', 'The WebSocket handshake is not valid.'));
  });
  let closing = false;

  const queueBytesMax = (): number => {
    const share = Math.max(queueBytesMin, config.waitingBytesMax / peers.size);
    return Math.min(config.wsQueueBytesMax, share);
  };
  const accept = (webSocket: WebSocket, socket: Socket, handshake: Handshake): void => {
    const peer = new Peer(webSocket, socket, { ...deps, ...handshake, queueBytesMax });
    peers.add(peer);
    webSocket.on('close', () => {
      peers.delete(peer);
      peer.ended();
    });
  };
  const sweep = setInterval(() => {
    for (const peer of peers) peer.sweep();
  }, config.wsPingSeconds * 1000).unref();

  return {
    get size() {
      return peers.size;
    },
    upgrade(incoming, socket, head) {
      socket.on('error', () => socket.destroy());
      try {
        const protocol = checkHandshake(incoming, config);
        if (closing) throw busy('draining', 'The server is stopping.');
        if (peers.size >= config.wsSocketsMax) {
          throw busy('overloaded', 'Too many WebSockets are open.');
        }
        const { authorization } = incoming.headers;
        server.handleUpgrade(incoming, socket, head, (webSocket) => {
          // `node:http` hands over the socket that it made; its type is wider for other servers.
          accept(webSocket, socket as Socket, { protocol, authorization });
        });
      } catch (error) {
        refuse(socket, error instanceof AppError ? error : failed(error, deps.log));
      }
    },
    async close() {
      closing = true;
      clearInterval(sweep);
      const gone = [...peers].map((peer) => peer.stop());
      await Promise.all(gone);
    },
  };
}

function busy(code: 'draining' | 'overloaded', message: string): AppError {
  return new AppError(code, message, { retryAfterSeconds: 5 });
}

/** A fault of ours: masked and logged. */
function failed(error: unknown, log: Log): AppError {
  log('error', 'upgrade failed', { reason: String(error) });
  return new AppError('internal_error', 'The server failed.');
}

interface Handshake {
  readonly protocol: Protocol;
  readonly authorization: string | undefined;
}

interface PeerDeps extends WebSocketDoorDeps, Handshake {
  /** Bytes that may wait for this socket at this moment. */
  readonly queueBytesMax: () => number;
}

/** One WebSocket: its connection's port to the world. */
class Peer implements SocketPort {
  readonly connection: Connection;
  readonly #webSocket: WebSocket;
  readonly #socket: Socket;
  readonly #deps: PeerDeps;
  #heard = true;
  /** A ping was sent, and no pong has come since. */
  #pinged = false;
  #sent = 0;
  #waited = false;
  /** Bytes of answers that wait to be sent, at most. */
  #own = 0;
  /** Those of short messages among them, at most: what a client gets for messages of its own. */
  #said = 0;
  /** What `own` holds, where it is much. */
  #held: Reservation | undefined;

  constructor(webSocket: WebSocket, socket: Socket, deps: PeerDeps) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#deps = deps;
    this.connection = new Connection({ ...deps, limits: deps.config, port: this });
    webSocket.on('message', (data) => this.#receive(data));
    webSocket.on('ping', () => {
      this.#heard = true;
      this.connection.countMessage();
    });
    webSocket.on('pong', () => {
      this.#heard = true;
      // The answer to a ping is free, any other pong a message like all.
      if (this.#pinged) this.#pinged = false;
      else this.connection.countMessage();
    });
    // A frame that breaks the rules, or a reset: `ws` closes the socket by itself.
    webSocket.on('error', () => this.connection.ended());
    socket.on('drain', () => {
      this.#count(0);
      this.connection.drained();
    });
  }

  send(text: string): void {
    if (!this.#isOpen()) return;
    this.#webSocket.send(text);
    this.#count(text.length);
    this.#said = Math.min(this.#said + text.length, this.#socket.writableLength);
    if (this.#said > this.#deps.queueBytesMax()) this.connection.close(behind);
  }

  sendResult(json: Answer, prefix: string): void {
    if (typeof json === 'string') {
      this.send(`${prefix}${json}}`);
      return;
    }
    if (!this.#isOpen()) return;
    this.#write(toSingleFrame(json, prefix));
    this.#count(json.length);
  }

  /**
   * Past `ws`, straight to its socket: without compression `ws` has written every frame to the
   * socket before `send()` returns, so that no frame can get between the parts of another one.
   */
  deliver(event: Parameters<SocketPort['deliver']>[0], prefix: string): void {
    if (!this.#isOpen()) return;
    const form = toFrame(event, prefix);
    this.#write(form);
    if (form.body === undefined || this.#socket.writableLength === 0) return;
    // What is written last is through last, also where the socket ends before.
    event.hold();
    this.#socket.write('', event.letGo);
  }

  isBacklogged(): boolean {
    const { writableLength } = this.#socket;
    return writableLength > queueBytesMin && writableLength > this.#deps.queueBytesMax();
  }

  close({ code, reason }: Closing): void {
    this.#webSocket.close(code, cutReason(reason));
  }

  /**
   * Ends a peer that has answered nothing since the last call, unless it is still reading what
   * waits for it: its answer stands behind that.
   */
  sweep(): void {
    const { writableLength, bytesWritten } = this.#socket;
    const sent = bytesWritten - writableLength;
    if (!this.#heard && !(this.#waited && sent > this.#sent)) {
      this.#webSocket.terminate();
      return;
    }
    this.#heard = false;
    this.#sent = sent;
    this.#waited = writableLength > 0;
    if (!this.#isOpen()) return;
    this.#pinged = true;
    this.#webSocket.ping();
    this.connection.keepAlive();
  }

  /** The socket is closed. */
  ended(): void {
    this.#held?.release();
    this.connection.ended();
  }

  stop(): Promise<void> {
    this.connection.close({ code: 1001, reason: 'The server is stopping' });
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#webSocket.terminate(), stopMilliseconds);
      this.#webSocket.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #write({ head, body }: EventForm): void {
    const socket = this.#socket;
    if (body === undefined) {
      socket.write(head);
      return;
    }
    socket.cork();
    socket.write(head);
    socket.write(body);
    socket.write(brace);
    socket.uncork();
  }

  /** Bytes that were written to this socket alone, events not among them. */
  #count(bytes: number): void {
    const { writableLength } = this.#socket;
    this.#own = Math.min(this.#own + bytes, writableLength);
    if (this.#own > queueBytesMin) (this.#held ??= this.#deps.pool.open()).set(this.#own);
    else this.#held?.release();
  }

  #isOpen(): boolean {
    return this.#webSocket.readyState === this.#webSocket.OPEN;
  }

  #receive(data: RawData): void {
    this.#heard = true;
    try {
      this.connection.receive(data as Buffer); // `binaryType` is left at `nodebuffer`
    } catch (error) {
      // A fault of ours ends one socket, not the process.
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#deps.log('error', 'websocket failed', { reason });
      this.connection.close({ code: 1011, reason: 'The server failed' });
    }
  }
}
