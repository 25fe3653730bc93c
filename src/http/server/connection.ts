/**
 * One connection. Its requests are carried out one after the other, in their order, each when the
 * answer before it has been handed over whole (RFC 9112 §9.3.2, R33).
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { MemoryPool, Reservation } from '../../memory-pool.ts';
import { hasBody } from './body.ts';

/** What a request that waits takes of memory: objects of Node, and the strings of each header. */
const waitingRequestBytes = 4_096;
const waitingHeaderBytes = 128;
/** The rest of the read that brought the head: more of a body is not read while it waits. */
const waitingBodyBytes = 65_536;
/** No read of 64 KiB brings more: reading stops while a request waits. */
const waitingRequestsMax = 4_096;

export class Connection {
  readonly socket: Socket;
  /** From then on it is no HTTP, and has limits of its own. */
  isUpgraded = false;
  /** What it brings is no HTTP any more, and is refused once. */
  isRefused = false;
  readonly #pool: MemoryPool;
  /** The response that was asked for last. */
  #last: ServerResponse | undefined;
  /** The response whose turn it is. */
  #current: ServerResponse | undefined;
  #waiting = 0;
  /** Made with the first request that waits: most connections never have one. */
  #reservation: Reservation | undefined;

  constructor(socket: Socket, pool: MemoryPool) {
    this.socket = socket;
    this.#pool = pool;
  }

  /** The last response that is due and not handed over whole yet; its request may still wait. */
  get due(): ServerResponse | undefined {
    const last = this.#last;
    return last === undefined || last.writableFinished || last.destroyed ? undefined : last;
  }

  /** Lets go of a response that has been sent. */
  tidy(): void {
    this.#last = this.due;
    if (this.#last === undefined) this.#current = undefined;
  }

  /** Calls `run` when it is the request's turn; never, where the connection ends before it. */
  enter(response: ServerResponse, run: () => void): void {
    // The last answer has ended the connection: what comes until it is closed is not looked at.
    if (!this.socket.writable) return;
    this.#last = response;
    // Node gives a response its socket when the one before it has been handed over whole.
    if (response.socket === null) this.#wait(response, run);
    else {
      this.#current = response;
      run();
    }
  }

  /** Calls `act` once all answers that are due are sent; never, where one ends the connection. */
  afterAnswers(act: () => void): void {
    const { due } = this;
    if (due === undefined) act();
    else {
      due.once('close', () => {
        if (this.socket.writable) act();
      });
    }
  }

  /**
   * The same where Node has let go of the socket, for an upgrade or CONNECT: the answers in front
   * still have to hear when the socket takes more, and the idle limit has to end them.
   */
  afterAnswersAlone(act: () => void): void {
    const { socket } = this;
    const tell = (): void => void this.#current?.emit('drain');
    const end = (): void => void socket.destroy();
    socket.on('drain', tell).on('timeout', end);
    this.afterAnswers(() => {
      socket.off('drain', tell).off('timeout', end);
      act();
    });
  }

  /** For a fault within the last request: `act` in place of its `run`, where that still waits. */
  insteadOfDue(act: () => void): void {
    const { due } = this;
    if (due?.socket === null) {
      due.removeAllListeners('socket');
      this.#runAtTurn(due, act);
    } else act();
  }

  #wait(response: ServerResponse, run: () => void): void {
    const bytes = bytesOf(response.req);
    if (!this.#admit(bytes)) {
      this.socket.destroy();
      return;
    }
    this.socket.pause();
    this.#runAtTurn(response, () => {
      this.#leave(bytes);
      run();
    });
  }

  /** In a later turn of the event loop, so that other connections get theirs in between. */
  #runAtTurn(response: ServerResponse, run: () => void): void {
    response.once('socket', () => {
      this.#current = response;
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
