/** One WebSocket: what it sends, what it receives, and what of both is in memory. */

import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import type { Answer } from '../../http/answer-cache.ts';
import { type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import { queueBytesMin } from '../events/queue-share.ts';
import type { EventForm } from '../events/shared-event.ts';
import { Connection, type ConnectionDeps, type Handshake } from './connection.ts';
import { brace, toFrame, toSingleFrame } from './frames.ts';
import { cutReason, type Closing } from './protocol.ts';
import type { GraphqlWatch } from '../watch.ts';
import type { SocketPort } from './socket-port.ts';

/** The same as `closeMilliseconds`, while the server stops. */
const stopMilliseconds = 1_500;
/** R30, also for one that goes on asking and does not read the answers. */
const behind: Closing = { code: 1013, reason: 'The client does not read what it asked for' };
const full: Closing = { code: 1013, reason: 'The server is serving too much at once' };
/** What a packet takes beside its bytes while it is in memory. */
const packetBytes = 512;
/** The heads of all frames of a message, at most; and the one of a ping or pong (RFC 6455 §5.2). */
const headsBytesMax = 4_096;
const headBytes = 6;
/** What `ws` holds beyond a message that is as long as it may be: the end of a read, twice. */
const readBytesMax = 131_072;
/** One message. Files, and larger bodies, go by HTTP. */
export const messageBytesMax = 262_144;

/** The same for all sockets: a copy of it would take more memory than the rest of a peer. */
export interface PeerDeps extends ConnectionDeps {
  /** Bytes that may wait for this socket at this moment. */
  readonly queueBytesMax: () => number;
  readonly watch?: GraphqlWatch | undefined;
}

/** A WebSocket and the socket below it. */
export interface PeerSockets {
  readonly webSocket: WebSocket;
  readonly socket: Socket;
}

/** Its connection's port to the world. */
export class Peer implements SocketPort {
  readonly connection: Connection;
  readonly #webSocket: WebSocket;
  readonly #socket: Socket;
  readonly #deps: PeerDeps;
  #heard = true;
  /** A ping was sent, and no pong has come since. */
  #pinged = false;
  #sent = 0;
  #waited = false;
  /** Bytes that wait to be sent, at most: of answers, and of events that are short. */
  #own = 0;
  /** Those of short messages among them, at most: what a client gets for messages of its own. */
  #said = 0;
  /** Bytes received of messages that are not whole, about. */
  #received = 0;
  /** What that keeps in memory: packets as they came. */
  #kept = 0;
  /** What of these is in memory, where it is much. */
  #held: Reservation | undefined;

  readonly #giveUp = (): void => {
    this.#deps.watch?.dropped('memory');
    this.#webSocket.terminate();
  };

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
      // The answer to a ping is free, any other pong a message like all.
      if (this.#pinged) this.#pinged = false;
      else this.connection.countMessage();
    });
    // A frame that breaks the rules, or a reset: `ws` closes the socket by itself.
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
    this.#count(form.head.length);
    if (form.body === undefined || this.#socket.writableLength === 0) return;
    // What is written last is through last, also where the socket ends before.
    this.#socket.write('', event.hold(this.#giveUp));
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

  /** Bytes that were written to this socket; a long event counts by itself, for all its readers. */
  #count(bytes: number): void {
    this.#own = Math.min(this.#own + bytes, this.#socket.writableLength);
    if (this.#bytes > uncountedBytesMax) this.#hold().set(this.#bytes);
    else this.#held?.release();
  }

  /** Bytes that were read from this socket; `ws` keeps them until their message is whole. */
  #hear(bytes: number): void {
    const max = messageBytesMax + readBytesMax;
    this.#received += bytes;
    this.#kept = Math.min(this.#kept + bytes + packetBytes, max);
    if (this.#bytes <= uncountedBytesMax) return;
    const missing = this.#bytes - this.#hold().bytes;
    if (missing <= 0 || this.#hold().grow(missing)) return;
    if (this.#isOpen()) this.connection.close(full);
    else this.#giveUp();
  }

  /** A message, ping or pong is whole. Where no more than `slack` is left, nothing is. */
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
    return (this.#held ??= this.#deps.pool.open(this.#giveUp));
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
      // An internal error ends one socket, not the process.
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#deps.log('error', 'websocket failed', { reason });
      this.connection.close({ code: 1011, reason: 'The server failed' });
    }
  }
}
