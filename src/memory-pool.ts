/**
 * One limit on the memory of all requests while they are served, and two purses. What is given back
 * when a request ends: bodies being received, operations that run, responses that clients have not
 * read. And what has no end in sight: open subscriptions, and requests that wait behind others. The
 * second purse is a small share of its own, and a connection gets a small part of it, so that it
 * never makes the first one short. They only count: what gives memory back from slow clients is the
 * minimum data rate (`http/server/data-rate.ts`), in proportion to what each connection holds.
 */

/** A body, response or queue up to this size is counted as part of its connection. */
export const uncountedBytesMax = 16_384;

/** The pool of ADMIN_PORT: enough for some tens of responses of `/metrics`. */
export const adminPoolBytes = 4 * 1024 * 1024;

/** One reservation gets at most this share of the free memory: large items leave room for small. */
const reservationShare = 0.75;
/** The share of what has no end in sight, and that of one connection in it. */
const lastingShare = 1 / 8;
const connectionShare = 1 / 64;
/** … and at least, where the pool is small: so many bytes, or this part of the second purse. */
const connectionBytesMin = 512 * 1024;
const connectionPart = 1 / 4;

interface Purse {
  /** True if a reservation of `held` bytes can be raised by `bytes`. */
  canGrow(bytes: number, held: number): boolean;
  /** Counts more bytes or, if negative, fewer. */
  add(bytes: number): void;
}

export class MemoryPool implements Purse {
  readonly bytesMax: number;
  /** The bytes reserved now, in both purses. `Reservation.set` can raise them above `bytesMax`. */
  bytes = 0;
  /** Of them, those of what has no end in sight. */
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

  canGrow(bytes: number, held: number): boolean {
    return held + bytes <= (this.#free + held) * reservationShare;
  }

  add(bytes: number): void {
    this.bytes += bytes;
  }
}

/** What one connection holds of a pool. */
export class ConnectionMemory {
  /** In both purses, and of what it shares with others, such as events. */
  bytes = 0;
  readonly #pool: MemoryPool;
  #lasting: LastingPurse | undefined;

  constructor(pool: MemoryPool) {
    this.#pool = pool;
  }

  /** Opens an empty reservation, which the caller must release. */
  open(): Reservation {
    return this.#pool.open(this);
  }

  /** Like `open`, for what has no end in sight. */
  openLasting(): Reservation {
    return new Reservation((this.#lasting ??= new LastingPurse(this.#pool)), this);
  }
}

/** What one connection holds without an end in sight; the beginning is part of the connection. */
class LastingPurse implements Purse {
  readonly #pool: MemoryPool;
  #bytes = 0;

  constructor(pool: MemoryPool) {
    this.#pool = pool;
  }

  canGrow(bytes: number): boolean {
    const { bytesMax, lastingBytes } = this.#pool;
    const counted = this.#countedAfter(bytes);
    if (counted === 0) return true;
    const others = lastingBytes - this.#countedAfter(0);
    const all = bytesMax * lastingShare;
    const least = Math.min(connectionBytesMin, all * connectionPart);
    return counted <= Math.max(bytesMax * connectionShare, least) && others + counted <= all;
  }

  add(bytes: number): void {
    const more = this.#countedAfter(bytes) - this.#countedAfter(0);
    this.#bytes += bytes;
    this.#pool.lastingBytes += more;
    this.#pool.add(more);
  }

  #countedAfter(bytes: number): number {
    return Math.max(0, this.#bytes + bytes - uncountedBytesMax);
  }
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

  /** Reserves this many more bytes. Returns false, and changes nothing, if there is no room. */
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
