/** The client's end of one WebSocket: what is queued for it, and whether it is alive. */

import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { type ConnectionMemory, uncountedBytesMax } from '../../memory-pool.ts';
import type { SharedEvent } from '../events/shared-event.ts';
import { queueBytesMin } from '../events/subscriber.ts';
import type { CloseFrame } from './protocols.ts';

/** How long a client may take to answer a close frame while the server is stopping. */
const stopMilliseconds = 1_500;
/** Bytes of short events that are written together. */
const joinedBytesMax = 16_384;

/** Ends each message, because the result is the last member of an object. */
const brace = Buffer.from('}');

export interface Accepted {
  readonly webSocket: WebSocket;
  /** What the connection holds. */
  readonly memory: ConnectionMemory;
}

/** None of its methods throws. */
export class ClientSocket {
  readonly memory: ConnectionMemory;
  readonly #webSocket: WebSocket;
  /** The TCP socket, to which events are written directly. */
  readonly #socket: Socket;
  /** The current limit for bytes queued for one socket. */
  readonly #getQueueBytesMax: () => number;
  /** Set it for each message, ping and pong: true if anything has arrived since the last ping. */
  isHeard = true;

  constructor({ webSocket, memory }: Accepted, socket: Socket, getQueueBytesMax: () => number) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.memory = memory;
    this.#getQueueBytesMax = getQueueBytesMax;
  }

  /** Queues a text message. `ws` sends nothing after `close`. */
  send(text: string): void {
    this.#webSocket.send(text);
  }

  /**
   * Queues `prefix`, an event and `}` as a message, made once for equal prefixes, without `ws`:
   * `send()` costs half as much again for each socket, and writes its frame before it returns, so
   * that frames cannot be mixed. Returns false if the client has not read what was queued before;
   * the event is not sent then.
   */
  deliver(event: SharedEvent, prefix: string): boolean {
    if (!this.#isOpen()) return true;
    if (this.isBacklogged()) return false;
    const pieces = event.toPieces(prefix, brace, toFrameHeader);
    const isShort = pieces.length === 1;
    if (event.isSameIteration) this.#joinShort(isShort);
    if (!isShort) this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    if (!isShort) this.#socket.uncork();
    if (!isShort && this.#socket.writableLength > 0) this.#whenTaken(event.reserve(this.memory));
    return true;
  }

  /** True if more bytes are queued than may be queued for one client (R30). */
  isBacklogged(): boolean {
    const { writableLength } = this.#socket;
    return writableLength > queueBytesMin && writableLength > this.#getQueueBytesMax();
  }

  /** Undefined, or resolves when the client has taken all that is queued now, or has left. */
  taken(): Promise<void> | undefined {
    if (this.#socket.writableLength <= uncountedBytesMax || !this.#isOpen()) return undefined;
    return new Promise((resolve) => this.#whenTaken(resolve));
  }

  /** Reads no more for now. */
  pause(): void {
    this.#webSocket.pause();
  }

  /** Reads on. Call it also when the queue is empty. */
  resume(): void {
    if (this.#webSocket.isPaused) this.#webSocket.resume();
  }

  /** Sends a ping. Terminates a client that has not responded to the last one. */
  ping(): void {
    // A client that is owed bytes is judged by the rate at which it takes them (`http/server`).
    if (!this.#isOpen() || this.#socket.writableLength > 0) return;
    if (this.isHeard) this.#webSocket.ping();
    else this.#webSocket.terminate();
    this.isHeard = false;
  }

  close({ code, reason }: CloseFrame): void {
    this.#webSocket.close(code, cutReason(reason));
  }

  /** Resolves when a socket that is being closed is gone. */
  gone(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#webSocket.terminate(), stopMilliseconds);
      this.#webSocket.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** The callback of an empty write is called after all bytes, or when the socket closes. */
  #whenTaken(callback: () => void): void {
    this.#socket.write('', callback);
  }

  /** Short events that follow each other at once leave in one write. */
  #joinShort(isShort: boolean): void {
    const socket = this.#socket;
    if (!isShort || socket.writableLength >= joinedBytesMax) socket.uncork();
    else if (socket.writableCorked === 0) {
      socket.cork();
      setImmediate(() => socket.uncork());
    }
  }

  #isOpen(): boolean {
    return this.#webSocket.readyState === this.#webSocket.OPEN;
  }
}

/** RFC 6455 §5.2: FIN, opcode 1 (text), not masked, the length in its shortest form. */
function toFrameHeader(length: number): Buffer {
  if (length < 126) return Buffer.from([0x81, length]);
  const short = length < 65_536;
  const header = Buffer.alloc(short ? 4 : 10);
  header[0] = 0x81;
  header[1] = short ? 126 : 127;
  if (short) header.writeUInt16BE(length, 2);
  else header.writeUIntBE(length, 4, 6);
  return header;
}

/** RFC 6455 §5.5.1: a control frame carries 125 bytes, of which two are the code. */
const reasonBytesMax = 123;

/** Truncates `reason` to the limit; a decoder that expects more leaves out half a character. */
function cutReason(reason: string): string {
  const bytes = Buffer.from(reason).subarray(0, reasonBytesMax);
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
}
