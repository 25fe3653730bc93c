/** The client's end of one WebSocket: what is queued for it, and whether it is alive. */

import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { type ConnectionMemory, type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import type { SharedEvent } from '../events/shared-event.ts';
import { queueBytesMin } from '../events/subscriber.ts';
import type { CloseFrame } from './protocols.ts';

/** How long a client may take to answer a close frame while the server is stopping. */
const stopMilliseconds = 1_500;
/** Bytes of short events that are written together. */
const joinedBytesMax = 16_384;

/** Of a message that is not whole: counted as part of the connection. */
const partBytesMax = 65_536;
/** Memory of a packet in addition to its bytes; most clients send packets of 1,400 bytes. */
const packetBytes = 256;
/** RFC 6455 §5.2: a client's frames are masked. */
const controlHeaderBytes = 6;
/** A message has come whole after as many pings, so that what it holds is not held for ever. */
const pingsMax = 4;
const tooSlow: CloseFrame = { code: 1008, reason: 'The message comes too slowly: send it again' };
export const full: CloseFrame = {
  code: 1013,
  reason: 'The server is serving too much at once: connect again later',
};

/** Ends each message, because the result is the last member of an object. */
const brace = Buffer.from('}');

export interface Accepted {
  readonly webSocket: WebSocket;
  /** What the connection holds. */
  readonly memory: ConnectionMemory;
  /** The client's (R34). */
  readonly address: string;
}

/** None of its methods throws. */
export class ClientSocket {
  readonly memory: ConnectionMemory;
  readonly address: string;
  readonly #webSocket: WebSocket;
  /** The TCP socket, to which events are written directly. */
  readonly #socket: Socket;
  /** The current limit for bytes queued for one socket. */
  readonly #getQueueBytesMax: () => number;
  /** What `ws` keeps of a message until it is whole. */
  readonly #part: Reservation;
  #partBytes = 0;
  #packets = 0;
  /** Pings since the message began. */
  #partPings = 0;
  /** True if anything has arrived since the last ping. */
  #isHeard = true;

  constructor(accepted: Accepted, socket: Socket, getQueueBytesMax: () => number) {
    const { webSocket, memory, address } = accepted;
    this.#webSocket = webSocket;
    this.address = address;
    this.#socket = socket;
    this.memory = memory;
    this.#part = memory.open();
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

  /** Counts what is kept of a packet until a message is whole. False: it is too much. */
  countPacket(bytes: number): boolean {
    this.#isHeard = true;
    this.#partBytes += bytes;
    this.#packets += 1;
    const held = this.#partBytes + this.#packets * packetBytes;
    return held <= partBytesMax || this.#part.grow(held - this.#part.bytes);
  }

  /** Call it for each ping and pong, which may come in the middle of a message. */
  endControl(payloadBytes: number): void {
    this.#partBytes -= payloadBytes + controlHeaderBytes;
    if (this.#partBytes <= 0) this.endMessage();
  }

  /** Call it when a message is whole, and when the socket is gone. */
  endMessage(): void {
    this.#part.release();
    this.#partBytes = 0;
    this.#packets = 0;
    this.#partPings = 0;
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
    if (this.#part.bytes > 0 && (this.#partPings += 1) >= pingsMax) return this.close(tooSlow);
    // A client that is owed bytes is judged by the rate at which it takes them (`http/server`), and
    // one that is not read cannot answer.
    if (!this.#isOpen() || this.#socket.writableLength > 0 || this.#webSocket.isPaused) return;
    if (this.#isHeard) this.#webSocket.ping();
    else this.#webSocket.terminate();
    this.#isHeard = false;
  }

  close({ code, reason }: CloseFrame): void {
    this.#webSocket.close(code, cutReason(reason));
    this.resume(); // for the answer
  }

  /** Resolves when a socket that is being closed is gone. */
  gone(): Promise<void> {
    setTimeout(() => this.#webSocket.terminate(), stopMilliseconds).unref();
    return new Promise((resolve) => void this.#webSocket.once('close', resolve));
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
