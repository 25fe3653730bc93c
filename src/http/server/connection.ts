/** One connection: the turns of its requests, what it holds, and whether its client is too slow. */

import type { ServerResponse } from 'node:http';
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
/** Requests in one packet that take some milliseconds to read. */
const costlyRequests = 100;

/**
 * One connection. Its requests run one after the other, in their order: each starts when the
 * response before it was written completely (RFC 9112 §9.3.2, R33).
 */
export class Connection {
  readonly socket: Socket;
  /** What it holds of the pool. */
  readonly memory: ConnectionMemory;
  /** The requests that wait, without what was received of their bodies. */
  readonly #waitingMemory;
  /** True when the socket no longer carries HTTP. */
  isUpgraded = false;
  /** True when invalid bytes were received; they are refused once. */
  isRefused = false;
  /** True when a response was begun that ends the connection: what waits is never looked at. */
  #isEnding = false;
  /** True when more requests came than may wait. */
  #isOverfull = false;
  /** The response to the last request received, and the body of that request. */
  #last: ServerResponse | undefined;
  #body: RequestBody | undefined;
  /** The response to the request that is running. */
  #current: ServerResponse | undefined;
  /** What ends the wait of each request that waits. */
  readonly #waiting = new Set<() => void>();
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
    const hasMany = this.#waiting.size >= costlyRequests;
    return (this.#isOverfull && hasMany) || this.#body?.isInPieces === true;
  }

  /** Call it once a second. Closes the connection of a client that is too slow. */
  sweep(idleSecondsMax: number): void {
    const { socket } = this;
    const due = this.#due;
    const bytes = due === 'body' ? socket.bytesRead : socket.bytesWritten - socket.writableLength;
    const hasPassed = this.#deadline.hasPassed(due, bytes, {
      held: this.memory.bytes,
      secondsMax: idleSecondsMax,
    });
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
   * Returns undefined if the request may start now, or a promise that is fulfilled at its turn, or
   * when the socket is closed before. `body`: of the request.
   */
  turn(outgoing: ServerResponse, body: RequestBody | undefined): Promise<void> | undefined {
    this.#last = outgoing;
    this.#body = body;
    // Node assigns the socket to a response when the one before it was written completely.
    if (outgoing.socket === null) return this.#wait(outgoing);
    this.#current = outgoing;
    return undefined;
  }

  /**
   * Call it when the head of a stream was written. If it ends the connection, what is pipelined
   * behind it is never answered (R33). Node keeps that until the connection ends: more than counts
   * as part of it ends it now, because a stream may have no end.
   */
  streams({ shouldKeepAlive }: ServerResponse): void {
    this.#isEnding ||= !shouldKeepAlive;
    if (this.#isEnding && this.#waitingMemory.bytes > uncountedBytesMax) this.socket.destroy();
  }

  /** Calls `act` when all pending responses are sent; never, if one ends the connection. */
  afterResponses(act: () => void): void {
    const { pending } = this;
    if (pending === undefined) act();
    else {
      pending.once('close', () => {
        if (this.socket.writable) act();
      });
    }
  }

  /**
   * Like `afterResponses`, after Node has detached the socket (upgrade, CONNECT): the pending
   * responses still need its `drain` events.
   */
  afterResponsesDetached(act: () => void): void {
    const { socket } = this;
    const tell = (): void => void this.#current?.emit('drain');
    socket.on('drain', tell);
    this.afterResponses(() => {
      socket.off('drain', tell);
      act();
    });
  }

  /** After invalid bytes in the last request: replaces its `run` by `act` if it still waits. */
  replacePending(act: () => void): void {
    const { pending } = this;
    if (pending?.socket === null) {
      pending.removeAllListeners('socket');
      this.#runAtTurn(pending, act);
    } else act();
  }

  #wait(outgoing: ServerResponse): Promise<void> {
    const { req } = outgoing;
    const headerBytes = (req.rawHeaders.length / 2) * waitingHeaderBytes;
    const declared = Number(req.headers['content-length']) || waitingBodyBytes;
    const bodyBytes = hasBody(req) ? Math.min(declared, waitingBodyBytes) : 0;
    const bytes = waitingRequestBytes + headerBytes + bodyBytes;
    const reservation = this.#waitingMemory;
    const hasRoom = !this.#isEnding || reservation.bytes + bytes <= uncountedBytesMax;
    this.#isOverfull = !hasRoom || !reservation.grow(bytes);
    if (this.#isOverfull) this.socket.destroy();
    else this.socket.pause();
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
      this.#runAtTurn(outgoing, () => {
        this.#waiting.delete(resolve);
        reservation.set(reservation.bytes - bytes);
        if (this.#waiting.size === 0 && this.#body?.isHeldBack !== true) this.socket.resume();
        resolve();
      });
    });
  }

  /** Runs in a later iteration of the event loop, so that other connections run in between. */
  #runAtTurn(outgoing: ServerResponse, run: () => void): void {
    outgoing.once('socket', () => {
      this.#current = outgoing;
      setImmediate(() => {
        if (!this.socket.destroyed) run();
      });
    });
  }
}
