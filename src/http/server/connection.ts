/**
 * One connection. Its requests run one after the other, in their order: each starts when the
 * response before it was written completely (RFC 9112 §9.3.2, R33).
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import { hasBody } from './body.ts';

/** Memory of a waiting request: objects of Node, and the strings of each header. */
const waitingRequestBytes = 4_096;
const waitingHeaderBytes = 128;
/** The rest of the read that contained the head: the body is not read further while it waits. */
const waitingBodyBytes = 65_536;
/** More than a read of 64 KiB can contain: reading stops while a request waits. */
const waitingRequestsMax = 4_096;

export class Connection {
  readonly socket: Socket;
  /** True when the socket no longer carries HTTP, and has limits of its own. */
  isUpgraded = false;
  /** True when invalid bytes were received; they are refused once. */
  isRefused = false;
  readonly #pool: MemoryPool;
  /** The response to the last request received. */
  #last: ServerResponse | undefined;
  /** The response to the request that is running. */
  #current: ServerResponse | undefined;
  #waiting = 0;
  /** Created with the first request that waits: most connections never have one. */
  #reservation: Reservation | undefined;

  constructor(socket: Socket, pool: MemoryPool) {
    this.socket = socket;
    this.#pool = pool;
  }

  /** The last response, unless it was written completely. Its request may still wait. */
  get pending(): ServerResponse | undefined {
    const last = this.#last;
    return last === undefined || last.writableFinished || last.destroyed ? undefined : last;
  }

  /** Releases a response that was sent. */
  releaseSent(): void {
    this.#last = this.pending;
    if (this.#last === undefined) this.#current = undefined;
  }

  /** Calls `run` when the request may start; never, if the connection ends before. */
  enter(outgoing: ServerResponse, run: () => void): void {
    // The last response ended the connection; what follows until it is closed is ignored.
    if (!this.socket.writable) return;
    this.#last = outgoing;
    // Node assigns the socket to a response when the one before it was written completely.
    if (outgoing.socket === null) this.#wait(outgoing, run);
    else {
      this.#current = outgoing;
      run();
    }
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
   * responses still need its `drain` events, and the idle limit must end them.
   */
  afterResponsesDetached(act: () => void): void {
    const { socket } = this;
    const tell = (): void => void this.#current?.emit('drain');
    const end = (): void => void socket.destroy();
    socket.on('drain', tell).on('timeout', end);
    this.afterResponses(() => {
      socket.off('drain', tell).off('timeout', end);
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

  #wait(outgoing: ServerResponse, run: () => void): void {
    const bytes = bytesOf(outgoing.req);
    if (!this.#admit(bytes)) {
      this.socket.destroy();
      return;
    }
    this.socket.pause();
    this.#runAtTurn(outgoing, () => {
      this.#leave(bytes);
      run();
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

  #admit(bytes: number): boolean {
    if (this.#reservation === undefined) {
      const reservation = this.#pool.open();
      this.socket.once('close', () => reservation.release());
      this.#reservation = reservation;
    }
    this.#waiting += 1;
    return this.#waiting <= waitingRequestsMax && this.#reservation.grow(bytes);
  }

  #leave(bytes: number): void {
    this.#waiting -= 1;
    this.#reservation?.set(this.#reservation.bytes - bytes);
    if (this.#waiting === 0) this.socket.resume();
  }
}

function bytesOf(request: IncomingMessage): number {
  const headers = (request.rawHeaders.length / 2) * waitingHeaderBytes;
  return waitingRequestBytes + headers + (hasBody(request) ? waitingBodyBytes : 0);
}
