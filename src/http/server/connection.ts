/**
 * One connection: the order of its requests, what it holds, and whether its client is too slow.
 *
 * Requests run one after the other (RFC 9112 §9.3.2, R33). Node parses all requests of a packet at
 * once; those behind the first wait in a line. Two requests in one packet, A and B:
 *
 *     Node     request A   request B            A is written: `close`
 *     A        runs ────────────────── responds
 *     B                    waits ────────────────────────────── setImmediate ── runs ── responds
 *     socket   flowing     paused ─────────────────────────────────────────── resumed
 *
 * 1. The first in the line starts when the response before it was written completely, in a later
 *    iteration of the event loop, so that other connections run in between.
 * 2. 32 may wait; one more ends the connection. Each takes from the purse of what has no end in
 *    sight: A may be a stream. If that purse is empty, the connection ends too.
 * 3. If A's response ends the connection, B is dropped with it.
 * 4. Invalid bytes, an upgrade and CONNECT wait in the same line (`afterResponses`). Invalid bytes
 *    in the body of B are answered in the place of B (`refuse`).
 * 5. A reset arrives by reading, and a paused socket does not read. So each second `sweep` writes
 *    nothing, zero bytes, to one that is paused: that fails if the client has reset it, and what B
 *    holds is given back within that second, not when A is written.
 */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '../../errors.ts';
import { ConnectionMemory, type MemoryPool } from '../../memory-pool.ts';
import type { RequestBody } from './body.ts';
import { type Due, ProgressDeadline } from './data-rate.ts';
import { endGently } from './linger.ts';

/** Requests that may wait on a connection (R33). */
const waitingMax = 32;
/**
 * Memory of a waiting request: objects of Node, and the strings of each header. Its body came in
 * the same packet, which is part of a connection.
 */
const waitingRequestBytes = 4_096;
const waitingHeaderBytes = 128;

export class Connection {
  readonly socket: Socket;
  /** The memory of the pool that the connection holds. */
  readonly memory: ConnectionMemory;
  /** True when the socket no longer carries HTTP. */
  isUpgraded = false;
  /** True when invalid bytes were received; they are refused once. */
  isRefused = false;
  /** The response to the last request received, and the body of that request. */
  #last: ServerResponse | undefined;
  #body: RequestBody | undefined;
  /** The response to the request that runs; until it is written completely, others wait. */
  #current: ServerResponse | undefined;
  /** What starts each of those that wait. */
  readonly #line: (() => void)[] = [];
  readonly #waitingMemory;
  readonly #deadline = new ProgressDeadline();

  constructor(socket: Socket, pool: MemoryPool) {
    this.socket = socket;
    this.memory = new ConnectionMemory(pool);
    this.#waitingMemory = this.memory.openLasting();
  }

  /** The last response, unless it was written completely. Its request may still wait. */
  get pending(): ServerResponse | undefined {
    const last = this.#last;
    return last === undefined || last.writableFinished || last.destroyed ? undefined : last;
  }

  /** Call it once a second. Closes the connection of a client that is too slow, or has left. */
  sweep(idleSecondsMax: number): void {
    const { socket } = this;
    // Bytes that wait to be written would fail by themselves.
    if (socket.isPaused() && socket.writable && socket.writableLength === 0) socket.write('');
    const due = this.#due;
    const bytes = due === 'body' ? socket.bytesRead : socket.bytesWritten - socket.writableLength;
    const hold = { held: this.memory.bytes, secondsMax: idleSecondsMax };
    const hasPassed = this.#deadline.hasPassed(due, bytes, hold);
    if (due === 'nothing') {
      this.#last = undefined;
      this.#body = undefined;
    }
    if (!hasPassed) return;
    // The handler that reads the body gets the error, which becomes the response.
    if (due === 'body' && this.#body?.isAwaited === true) {
      const reason = 'The body did not arrive in time.';
      this.#body.leave(new AppError('request_timeout', reason, { close: true }));
    } else socket.destroy();
  }

  get #due(): Due {
    const { socket, pending } = this;
    if (socket.writableLength > 0) return 'output';
    const isComing = this.#last?.req.complete === false && !socket.isPaused();
    if (pending === undefined) return isComing ? 'body' : 'nothing';
    return isComing && this.#body?.isAwaited === true ? 'body' : 'response';
  }

  /** Call it when the socket is closed: those that wait find that it is, and end. */
  end(): void {
    for (const start of this.#line.splice(0)) start();
  }

  /**
   * Returns undefined if the request may start now, or a promise that is fulfilled when it may, or
   * when the connection has ended before. `body`: of the request.
   */
  enqueue(outgoing: ServerResponse, body: RequestBody | undefined): Promise<void> | undefined {
    this.#last = outgoing;
    this.#body = body;
    // It closes once, so `once`, which makes a function more, is not needed.
    outgoing.on('close', () => this.#startNext());
    if (this.#current !== undefined) return this.#wait(outgoing);
    this.#current = outgoing;
    return undefined;
  }

  /** Calls `act` when all responses before it are sent; never, if one ends the connection. */
  afterResponses(act: () => void): void {
    const { socket } = this;
    if (this.#current === undefined) {
      act();
      return;
    }
    // After an upgrade or CONNECT Node no longer tells the responses in front that the socket has
    // drained: what is streamed in them waits for that event.
    const tell = (): void => void this.#current?.emit('drain');
    socket.on('drain', tell);
    this.#line.push(() => {
      socket.off('drain', tell);
      this.#current = undefined;
      if (socket.writable) act();
    });
  }

  /** Calls `act`, which refuses invalid bytes, in the place of the request that they belong to. */
  refuse(act: () => void): void {
    const { pending } = this;
    if (pending === undefined || pending.req.complete) this.afterResponses(act);
    else {
      const start = this.#line.pop();
      if (start !== undefined) {
        this.afterResponses(act);
        this.#line.push(start); // finds that the connection has ended
      } else if (pending.headersSent) endGently(this.socket);
      else act();
    }
  }

  #wait(outgoing: ServerResponse): Promise<void> {
    const memory = this.#waitingMemory;
    const { rawHeaders } = outgoing.req;
    const bytes = waitingRequestBytes + (rawHeaders.length / 2) * waitingHeaderBytes;
    if (this.#line.length >= waitingMax || !memory.grow(bytes)) {
      this.socket.destroy();
      return Promise.resolve();
    }
    this.socket.pause();
    return new Promise((resolve) => {
      this.#line.push(() => {
        memory.set(memory.bytes - bytes);
        this.#current = outgoing;
        if (this.#line.length === 0 && this.#body?.isHeldBack !== true) this.socket.resume();
        resolve();
      });
    });
  }

  #startNext(): void {
    if (this.#line.length === 0) this.#current = undefined;
    else setImmediate(() => this.#line.shift()?.());
  }
}
