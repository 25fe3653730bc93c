/**
 * One limit on the memory of all requests while they are served. It is divided into two purses:
 *
 * | purse   | share | what takes from it                                                         |
 * | ------- | ----- | -------------------------------------------------------------------------- |
 * | passing | 7/8   | what a request gives back when it ends: its body, operation and response   |
 * | lasting | 1/8   | what has no end in sight: subscriptions, requests that wait behind others  |
 *
 * One reservation gets at most three quarters of what is free in the first purse, so that a large
 * item leaves memory for small ones. One connection gets at most a 64th of the pool from the
 * second one. Therefore no number of open subscriptions makes a body or a response short of
 * memory (R47).
 *
 * Example: of a pool of 112 MiB, 98 are in the first purse. A response of 4 MiB reserves 4 of them
 * until its client has read it. A subscription of 40 KB takes 24 KB from the second purse, because
 * the first 16 KiB count as part of its connection; its connection may take 1.75 MiB.
 *
 * The pool only counts. What gives memory back from slow clients is the minimum data rate
 * (`http/server/data-rate.ts`), in proportion to what each connection holds.
 */

import { type AppError, overloaded } from './errors.ts';

/** A body, response or queue up to this size is counted as part of its connection. */
export const uncountedBytesMax = 16_384;

/** The pool of ADMIN_PORT: enough for some tens of responses of `/metrics`. */
export const adminPoolBytes = 4 * 1024 * 1024;

const reservationShare = 3 / 4;
const lastingShare = 1 / 8;
const connectionShare = 1 / 64;
/** A connection may hold this, or a 32nd if that is less: a 64th of a small pool is too little. */
const connectionBytesMin = 512 * 1024;
const connectionShareMin = 1 / 32;

/** What a reservation takes from. */
type Purse = Pick<MemoryPool, 'canGrow' | 'add'>;

/** The first purse, and the sum of both. */
export class MemoryPool {
  readonly bytesMax: number;
  /** The bytes reserved now, in both purses. `Reservation.set` can raise them above `bytesMax`. */
  bytes = 0;
  /** The part of `bytes` that the second purse holds. */
  lastingBytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** True while what could not be refused exceeds the limit. */
  get isOver(): boolean {
    return this.#free < 0;
  }

  get #free(): number {
    return this.bytesMax * (1 - lastingShare) - (this.bytes - this.lastingBytes);
  }

  /** Opens an empty reservation, which the caller must release. `holder`: whose memory it is. */
  open(holder?: ConnectionMemory): Reservation {
    return new Reservation(this, holder);
  }

  /** True if a reservation of `held` bytes can be raised by `bytes`. */
  canGrow(bytes: number, held: number): boolean {
    return held + bytes <= (this.#free + held) * reservationShare;
  }

  /** Counts more bytes or, if negative, fewer. */
  add(bytes: number): void {
    this.bytes += bytes;
  }
}

/** What one connection holds of a pool, and its part of the second purse. */
export class ConnectionMemory implements Purse {
  /** In both purses, and of what it shares with others, such as events. */
  bytes = 0;
  readonly #pool: MemoryPool;
  #lastingBytes = 0;

  constructor(pool: MemoryPool) {
    this.#pool = pool;
  }

  /** Opens an empty reservation, which the caller must release. */
  open(): Reservation {
    return new Reservation(this.#pool, this);
  }

  /** Like `open`, for what has no end in sight. */
  openLasting(): Reservation {
    return new Reservation(this, this);
  }

  canGrow(bytes: number): boolean {
    const { bytesMax, lastingBytes } = this.#pool;
    const counted = countedOf(this.#lastingBytes + bytes);
    if (counted === 0) return true;
    const least = Math.min(connectionBytesMin, bytesMax * connectionShareMin);
    const others = lastingBytes - countedOf(this.#lastingBytes);
    return (
      counted <= Math.max(bytesMax * connectionShare, least) &&
      others + counted <= bytesMax * lastingShare
    );
  }

  add(bytes: number): void {
    const more = countedOf(this.#lastingBytes + bytes) - countedOf(this.#lastingBytes);
    this.#lastingBytes += bytes;
    this.#pool.lastingBytes += more;
    this.#pool.add(more);
  }
}

/** The bytes beyond those that count as part of the connection. */
function countedOf(bytes: number): number {
  return Math.max(0, bytes - uncountedBytesMax);
}

/** The memory of one body, response, operation or queue. */
export class Reservation {
  readonly #purse: Purse;
  #holder: ConnectionMemory | undefined;
  bytes = 0;

  constructor(purse: Purse, holder?: ConnectionMemory) {
    this.#purse = purse;
    this.#holder = holder;
  }

  /** Counts it from now on as held by a connection, if nobody holds it. */
  holdFor(memory: ConnectionMemory): void {
    this.#holder = memory;
    memory.bytes += this.bytes;
  }

  /** True if this many more bytes could be reserved now. */
  canGrow(bytes: number): boolean {
    return this.#purse.canGrow(bytes, this.bytes);
  }

  /** Reserves this many more bytes. Returns false, and changes nothing, if they are not free. */
  grow(bytes: number): boolean {
    const canGrow = this.canGrow(bytes);
    if (canGrow) this.set(this.bytes + bytes);
    return canGrow;
  }

  /** Sets the bytes without a limit: for what is in memory already and cannot be refused. */
  set(bytes: number): void {
    const more = bytes - this.bytes;
    this.#purse.add(more);
    if (this.#holder !== undefined) this.#holder.bytes += more;
    this.bytes = bytes;
  }

  /** Returns all bytes to the pool. May be called twice. */
  release(): void {
    this.set(0);
  }
}

/** The pool is full; a later request may succeed. */
export function poolIsFull(): AppError {
  return overloaded('The server is serving too much at once.');
}
