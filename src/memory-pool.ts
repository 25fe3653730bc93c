/**
 * One limit on the memory of all requests while they are served: bodies being received, operations
 * that run or wait, and responses that clients have not read yet. It only counts: what gives memory
 * back from slow clients is the minimum data rate (`http/server/data-rate.ts`).
 */

/** A body, response or queue up to this size is counted as part of its connection. */
export const uncountedBytesMax = 16_384;

/** The pool of ADMIN_PORT: enough for some tens of responses of `/metrics`. */
export const adminPoolBytes = 4 * 1024 * 1024;

/** One reservation gets at most this share of the free memory: large items leave room for small. */
const reservationShare = 0.75;

export class MemoryPool {
  readonly bytesMax: number;
  /** The bytes reserved now. `Reservation.set` can raise them above `bytesMax`. */
  bytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** True while more than half is reserved: slow clients are then waited for less long. */
  get isShort(): boolean {
    return this.bytes > this.bytesMax / 2;
  }

  /** True while what could not be refused exceeds the limit. */
  get isOver(): boolean {
    return this.bytes > this.bytesMax;
  }

  /** Opens an empty reservation, which the caller must release. */
  open(): Reservation {
    return new Reservation(this);
  }
}

/** The memory of one body, response or socket. */
export class Reservation {
  readonly #pool: MemoryPool;
  bytes = 0;

  constructor(pool: MemoryPool) {
    this.#pool = pool;
  }

  /** True if this many more bytes could be reserved now. */
  hasRoom(bytes: number): boolean {
    const free = this.#pool.bytesMax - this.#pool.bytes;
    return this.bytes + bytes <= (free + this.bytes) * reservationShare;
  }

  /** Reserves this many more bytes. Returns false, and changes nothing, if there is no room. */
  grow(bytes: number): boolean {
    const hasRoom = this.hasRoom(bytes);
    if (hasRoom) this.set(this.bytes + bytes);
    return hasRoom;
  }

  /** Sets the bytes without a limit: for what is in memory already and cannot be refused. */
  set(bytes: number): void {
    this.#pool.bytes += bytes - this.bytes;
    this.bytes = bytes;
  }

  /** Returns all bytes to the pool. May be called twice. */
  release(): void {
    this.set(0);
  }
}
