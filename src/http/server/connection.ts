/**
 * One connection: the order of its requests, what it holds, and whether its client is too slow.
 *
 * Requests run one after the other (RFC 9112 §9.3.2, R33). Node parses all requests of a packet at
 * once, and gives the socket to a response when the one before it was written completely: then the
 * next request starts. Two requests in one packet, A and B:
 *
 *     Node     request A   request B            A is written: B gets the socket
 *     A        runs ────────────────── responds
 *     B                    waits ────────────────────────────── setImmediate ── runs ── responds
 *     socket   flowing     paused ───────────────────────────── resumed
 *
 * 1. `enqueue` is called for each request as Node emits it. The response of A has the socket, so A
 *    runs at once; B waits, and the socket is paused, so that few requests wait.
 * 2. A request that waits takes from the purse of what has no end in sight: A may be a stream. If
 *    that purse is empty, the connection ends.
 * 3. If A's response ends the connection, the socket never reaches B, which is dropped with it.
 * 4. Invalid bytes, an upgrade and CONNECT wait for the responses before them (`afterResponses`).
 *    Invalid bytes in the body of B are answered in the place of B (`replacePending`).
 * 5. A reset arrives by reading, and a paused socket does not read. So each second `sweep` writes
 *    nothing, zero bytes, to one that is paused: that fails if the client has reset it, and what B
 *    holds is given back within that second, not when A is written.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '../../errors.ts';
import { ConnectionMemory, type MemoryPool, uncountedBytesMax } from '../../memory-pool.ts';
import type { RequestBody } from './body.ts';
import { type Due, ProgressDeadline } from './data-rate.ts';
import { hasBody } from './incoming.ts';

/** Memory of a waiting request: objects of Node, and the strings of each header. */
const waitingRequestBytes = 4_096;
const waitingHeaderBytes = 128;
/** The rest of the read that contained the head: the body is not read further while it waits. */
const waitingBodyBytes = 65_536;

export class Connection {
  readonly socket: Socket;
  /** The memory of the pool that the connection holds. */
  readonly memory: ConnectionMemory;
  /** True when the socket no longer carries HTTP. */
  isUpgraded = false;
  /** True when invalid bytes were received; they are refused once. */
  isRefused = false;
  /** True if the connection was ended because more requests came than may wait. */
  #hasTooMany = false;
  /** The response to the last request received, and the body of that request. */
  #last: ServerResponse | undefined;
  #body: RequestBody | undefined;
  /** The response to the request that is running. */
  #current: ServerResponse | undefined;
  /** What ends the wait of each request that waits. */
  readonly #waiting = new Set<() => void>();
  /** The memory of the requests that wait, without what was received of their bodies. */
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

  /** True if it was ended for a packet with too many requests, or pieces of a body. */
  get isCostly(): boolean {
    return this.#hasTooMany || this.#body?.isInPieces === true;
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
      this.#current = undefined;
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

  /** Call it when the socket is closed. */
  end(): void {
    this.#waitingMemory.release();
    for (const end of this.#waiting) end();
  }

  /**
   * Returns undefined if the request may start now, or a promise that is fulfilled when it may, or
   * when the socket is closed before. `body`: of the request.
   */
  enqueue(outgoing: ServerResponse, body: RequestBody | undefined): Promise<void> | undefined {
    this.#last = outgoing;
    this.#body = body;
    if (outgoing.socket === null) return this.#wait(outgoing);
    this.#current = outgoing;
    return undefined;
  }

  /**
   * Call it when the head of a stream was written. If the stream ends the connection, Node keeps
   * what waits behind it for as long as it lasts: more than counts as part of a connection ends the
   * connection now.
   */
  beginStream(): void {
    if (this.#isEnding && this.#waitingMemory.bytes > uncountedBytesMax) this.socket.destroy();
  }

  /** True while a response is written that ends the connection. */
  get #isEnding(): boolean {
    return this.#current?.headersSent === true && !this.#current.shouldKeepAlive;
  }

  /** Calls `act` when all pending responses are sent; never, if one ends the connection. */
  afterResponses(act: () => void): void {
    const { pending, socket } = this;
    if (pending === undefined) {
      act();
      return;
    }
    // Node has detached the socket after an upgrade or CONNECT, and responses need its events.
    const tell = (): void => void this.#current?.emit('drain');
    socket.on('drain', tell);
    pending.once('close', () => {
      socket.off('drain', tell);
      if (socket.writable) act();
    });
  }

  /** After invalid bytes in the last request: calls `act` in its place if it still waits. */
  replacePending(act: () => void): void {
    const { pending } = this;
    if (pending?.socket === null) {
      pending.removeAllListeners('socket');
      this.#whenFirst(pending, act);
    } else act();
  }

  #wait(outgoing: ServerResponse): Promise<void> {
    const bytes = waitingBytesOf(outgoing.req);
    const memory = this.#waitingMemory;
    const mayWait = !this.#isEnding || memory.bytes + bytes <= uncountedBytesMax;
    if (mayWait && memory.grow(bytes)) this.socket.pause();
    else {
      this.#hasTooMany = true;
      this.socket.destroy();
    }
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
      this.#whenFirst(outgoing, () => {
        this.#waiting.delete(resolve);
        memory.set(memory.bytes - bytes);
        if (this.#waiting.size === 0 && this.#body?.isHeldBack !== true) this.socket.resume();
        resolve();
      });
    });
  }

  /** Calls `run` in a later iteration of the event loop: other connections run in between. */
  #whenFirst(outgoing: ServerResponse, run: () => void): void {
    outgoing.once('socket', () => {
      this.#current = outgoing;
      setImmediate(() => {
        if (!this.socket.destroyed) run();
      });
    });
  }
}

function waitingBytesOf(incoming: IncomingMessage): number {
  const { rawHeaders, headers } = incoming;
  const declared = Number(headers['content-length']) || waitingBodyBytes;
  const bodyBytes = hasBody(incoming) ? Math.min(declared, waitingBodyBytes) : 0;
  return waitingRequestBytes + (rawHeaders.length / 2) * waitingHeaderBytes + bodyBytes;
}
