/**
 * One connection. Its requests run one after the other, in their order: each starts when the
 * response before it was written completely (RFC 9112 §9.3.2, R33).
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import { AppError } from '../../errors.ts';
import type { RequestBody } from './body.ts';
import { type Awaited, type DataRate, Patience } from './data-rate.ts';
import { hasBody } from './incoming.ts';

/** Memory of a waiting request: objects of Node, and the strings of each header. */
const waitingRequestBytes = 4_096;
const waitingHeaderBytes = 128;
/** The rest of the read that contained the head: the body is not read further while it waits. */
const waitingBodyBytes = 65_536;
/** More than a read of 64 KiB can contain: reading stops while a request waits. */
const waitingRequestsMax = 4_096;

export class Connection {
  readonly socket: Socket;
  /** True when the socket no longer carries HTTP. */
  isUpgraded = false;
  /** True when invalid bytes were received; they are refused once. */
  isRefused = false;
  /** The response to the last request received. */
  #last: ServerResponse | undefined;
  /** The response to the request that is running. */
  #current: ServerResponse | undefined;
  /** The body of the last request received. */
  #body: RequestBody | undefined;
  readonly #patience = new Patience();
  /** The requests that wait, and their memory. */
  #waiting = 0;
  readonly #room: Reservation;

  constructor(socket: Socket, pool: MemoryPool) {
    this.socket = socket;
    this.#room = pool.open();
  }

  /** Call it when the socket is closed. */
  release(): void {
    this.#room.release();
  }

  /** The last response, unless it was written completely. Its request may still wait. */
  get pending(): ServerResponse | undefined {
    const last = this.#last;
    return last === undefined || last.writableFinished || last.destroyed ? undefined : last;
  }

  /** Call it once a second. Closes the connection of a client that is too slow. */
  sweep(rate: DataRate): void {
    const { socket } = this;
    const awaited = this.#awaited;
    const bytes =
      awaited === 'body' ? socket.bytesRead : socket.bytesWritten - socket.writableLength;
    const isOver = this.#patience.isOver(awaited, bytes, rate);
    if (awaited === 'nothing') {
      this.#last = undefined;
      this.#current = undefined;
      this.#body = undefined;
    }
    if (!isOver) return;
    // The handler that reads the body gets the error, which becomes the response.
    if (awaited === 'body' && this.#body?.isAwaited === true) this.#body.leave(tooSlow());
    else socket.destroy();
  }

  get #awaited(): Awaited {
    const { socket, pending } = this;
    if (socket.writableLength > 0) return 'output';
    const isComing = this.#last?.req.complete === false && !socket.isPaused();
    if (pending === undefined) return isComing ? 'body' : 'nothing';
    return isComing && this.#body?.isAwaited === true ? 'body' : 'response';
  }

  /**
   * Returns undefined if the request may start now, or a promise of its turn, which is never
   * fulfilled if the connection ends before. `body`: of the request.
   */
  turn(outgoing: ServerResponse, body: RequestBody | undefined): Promise<void> | undefined {
    this.#last = outgoing;
    this.#body = body;
    // Node assigns the socket to a response when the one before it was written completely.
    if (outgoing.socket === null) return this.#wait(outgoing);
    this.#current = outgoing;
    return undefined;
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
    const bytes = bytesOf(outgoing.req);
    this.#waiting += 1;
    if (this.#waiting <= waitingRequestsMax && this.#room.grow(bytes)) this.socket.pause();
    else this.socket.destroy();
    return new Promise((resolve) => {
      this.#runAtTurn(outgoing, () => {
        this.#waiting -= 1;
        this.#room.set(this.#room.bytes - bytes);
        if (this.#waiting === 0) this.socket.resume();
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

function tooSlow(): AppError {
  return new AppError('request_timeout', 'The body did not arrive in time.', { close: true });
}

function bytesOf(request: IncomingMessage): number {
  const headers = (request.rawHeaders.length / 2) * waitingHeaderBytes;
  return waitingRequestBytes + headers + (hasBody(request) ? waitingBodyBytes : 0);
}
