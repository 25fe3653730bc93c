/** One WebSocket: sends and receives, and accounts for the memory of both. */

import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import { toStack } from '../../errors.ts';
import type { JsonBody } from '../../http/response-cache.ts';
import { type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import { queueBytesMin } from '../events/queue-share.ts';
import type { EventForm } from '../events/shared-event.ts';
import { Connection, type ConnectionDeps, type Handshake } from './connection.ts';
import { brace, toFrame, toSingleFrame } from './frames.ts';
import { cutReason, type Closing } from './protocol.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import type { SocketPort } from './socket-port.ts';

/** Like `closeMilliseconds`, but while the server is stopping. */
const stopMilliseconds = 1_500;
/** R30. Also for a client that sends requests and does not read the results. */
const behind: Closing = { code: 1013, reason: 'The client does not read what it asked for' };
const full: Closing = { code: 1013, reason: 'The server is serving too much at once' };
/** Memory of a received packet in addition to its bytes. */
const packetBytes = 512;
/** Upper limits for the frame headers of a message, and of a ping or pong (RFC 6455 §5.2). */
const headsBytesMax = 4_096;
const headBytes = 6;
/** What `ws` can buffer in addition to the longest message: two reads of 64 KiB. */
const readBytesMax = 131_072;
/** Bytes of short events that are written together. */
const gatheredBytesMax = 16_384;
/** Limit for one message. Files and larger requests are sent over HTTP. */
export const messageBytesMax = 262_144;

/** Shared by all sockets: a copy would take more memory than the rest of a peer. */
export interface PeerDeps extends ConnectionDeps {
  /** The current limit for bytes queued for one socket. */
  readonly queueBytesMax: () => number;
  readonly metrics?: GraphqlMetrics | undefined;
}

/** A WebSocket and its TCP socket. */
export interface PeerSockets {
  readonly webSocket: WebSocket;
  readonly socket: Socket;
}

/** One client. It implements the port through which its connection sends. */
export class Peer implements SocketPort {
  readonly connection: Connection;
  readonly #webSocket: WebSocket;
  readonly #socket: Socket;
  readonly #deps: PeerDeps;
  #heard = true;
  /** True if a ping was sent and no pong has arrived since. */
  #pinged = false;
  #sent = 0;
  #waited = false;
  /** Upper bound of the queued bytes of results and short events. */
  #own = 0;
  /** Upper bound of the queued bytes of short messages, which respond to the client's own. */
  #said = 0;
  /** Approximate bytes received of incomplete messages. */
  #received = 0;
  /** Memory of these, in which packets are kept as they came. */
  #kept = 0;
  /** The reservation for queued and received bytes, if they are many. */
  #held: Reservation | undefined;

  constructor(deps: PeerDeps, handshake: Handshake, { webSocket, socket }: PeerSockets) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#deps = deps;
    this.connection = new Connection(deps, this, handshake);
    webSocket.on('message', (data) => this.#receive(data));
    webSocket.on('ping', ({ length }) => {
      this.#heard = true;
      this.#consume(length + headBytes, 0);
      this.connection.countMessage();
    });
    webSocket.on('pong', ({ length }) => {
      this.#heard = true;
      this.#consume(length + headBytes, 0);
      // The first pong after a ping is free; others count as messages.
      if (this.#pinged) this.#pinged = false;
      else this.connection.countMessage();
    });
    // An invalid frame or a reset; `ws` then closes the socket.
    webSocket.on('error', () => this.connection.ended());
    socket.on('data', ({ length }) => this.#hear(length));
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

  sendResult(json: JsonBody, prefix: string): void {
    if (typeof json === 'string') {
      this.send(`${prefix}${json}}`);
      return;
    }
    if (!this.#isOpen()) return;
    this.#write(toSingleFrame(json, prefix));
    this.#count(json.length);
  }

  /**
   * Writes to the socket directly, without `ws`. Without compression `ws` writes every frame before
   * `send()` returns, so that frames cannot be mixed.
   */
  deliver(event: Parameters<SocketPort['deliver']>[0], prefix: string): void {
    if (!this.#isOpen()) return;
    if (this.isBacklogged()) {
      this.#deps.metrics?.subscriberDropped('behind');
      this.connection.close(behind);
      return;
    }
    const form = toFrame(event, prefix);
    if (event.isFurther) this.#gather(form.body === undefined);
    this.#write(form);
    this.#count(form.head.length);
    if (form.body === undefined || this.#socket.writableLength === 0) return;
    // The callback of this empty write is called after all bytes, or when the socket closes.
    this.#socket.write('', event.hold());
  }

  isBacklogged(): boolean {
    const { writableLength } = this.#socket;
    return writableLength > queueBytesMin && writableLength > this.#deps.queueBytesMax();
  }

  close({ code, reason }: Closing): void {
    this.#webSocket.close(code, cutReason(reason));
  }

  /**
   * Terminates a peer that has not responded since the last call. A peer that is still reading its
   * queue is spared: its pong comes after that.
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

  /** Call it when the socket is closed. */
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

  /** Short events that follow each other at once leave in one write. */
  #gather(isShort: boolean): void {
    const socket = this.#socket;
    if (!isShort || socket.writableLength >= gatheredBytesMax) socket.uncork();
    else if (socket.writableCorked === 0) {
      socket.cork();
      setImmediate(() => socket.uncork());
    }
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

  /** Counts queued bytes. Long events are not included: each counts once for all sockets. */
  #count(bytes: number): void {
    this.#own = Math.min(this.#own + bytes, this.#socket.writableLength);
    if (this.#bytes > uncountedBytesMax) this.#hold().set(this.#bytes);
    else this.#held?.release();
  }

  /** Counts received bytes; `ws` keeps them until their message is complete. */
  #hear(bytes: number): void {
    const max = messageBytesMax + readBytesMax;
    this.#received += bytes;
    this.#kept = Math.min(this.#kept + bytes + packetBytes, max);
    if (this.#bytes <= uncountedBytesMax) return;
    const missing = this.#bytes - this.#hold().bytes;
    if (missing <= 0 || this.#hold().grow(missing)) return;
    if (this.#isOpen()) this.connection.close(full);
    else this.#webSocket.terminate();
  }

  /** A message, ping or pong is complete. If at most `slack` bytes are left, no other is begun. */
  #consume(bytes: number, slack: number): void {
    this.#received -= bytes;
    if (this.#received > slack) return;
    this.#received = 0;
    this.#kept = 0;
    this.#count(0);
  }

  get #bytes(): number {
    return this.#own + this.#kept;
  }

  #hold(): Reservation {
    return (this.#held ??= this.#deps.pool.open());
  }

  #isOpen(): boolean {
    return this.#webSocket.readyState === this.#webSocket.OPEN;
  }

  #receive(data: RawData): void {
    const message = data as Buffer; // `binaryType` is left at `nodebuffer`
    this.#heard = true;
    this.#kept = Math.min(this.#kept, this.#received - message.length + packetBytes);
    this.#consume(message.length, headsBytesMax);
    try {
      this.connection.receive(message);
    } catch (error) {
      // An internal error closes one socket, and does not end the process.
      this.#deps.log('error', 'websocket failed', { reason: toStack(error) });
      this.connection.close({ code: 1011, reason: 'The server failed' });
    }
  }
}
