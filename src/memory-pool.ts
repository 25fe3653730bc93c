/**
 * One limit on the memory of all requests while they are served: bodies being received, operations
 * that run or wait, and responses that clients have not read yet.
 *
 * Two rules keep a few clients from using all of it. A holder gets at most three quarters of the
 * free memory, so that large items leave room for small ones. If memory is short, clients that have
 * not read their responses for some seconds are disconnected, the longest waiting first.
 */

export interface MemoryPool {
  /** In bytes. */
  readonly bytesMax: number;
  /** The bytes held now. `set` can raise it above `bytesMax`. */
  readonly bytes: number;
  /**
   * Opens an empty reservation, which the caller must release. `giveUp` is for what only waits for
   * a client: it is called when others need the memory, and must close the client's connection.
   */
  open(giveUp?: () => void): Reservation;
}

/** The memory held for one body, response or socket. */
export interface Reservation {
  readonly bytes: number;
  /** True if this many more bytes could be taken now. May make other holders give up. */
  hasRoom(bytes: number): boolean;
  /** Takes this many more bytes. Returns false, and takes nothing, if there is no room. */
  grow(bytes: number): boolean;
  /** Sets the bytes held, without a limit: for what is in memory already and cannot be refused. */
  set(bytes: number): void;
  /** Returns all bytes to the pool. May be called twice. */
  release(): void;
}

/** A body, response or queue up to this size is counted as part of its connection. */
export const uncountedBytesMax = 16_384;

/** The pool of ADMIN_PORT: enough for some tens of responses of `/metrics`. */
export const adminPoolBytes = 4 * 1024 * 1024;

/** The share of the free memory that one holder may take. */
const holderShare = 0.75;
/** A client has at least this long to read its response, even if memory is short. */
const patienceMilliseconds = 5_000;

/** Creates a pool of `bytesMax` bytes. `now`: milliseconds of a monotonic clock. */
export function createMemoryPool(
  bytesMax: number,
  now: () => number = () => performance.now(),
): MemoryPool {
  const pool: Pool = {
    bytesMax,
    bytes: 0,
    now,
    waiting: new Set(),
    open: (giveUp) => new PoolReservation(pool, giveUp),
  };
  return pool;
}

interface Pool extends MemoryPool {
  bytes: number;
  readonly now: () => number;
  /** The holders that can give up, in the order in which they began to hold memory. */
  readonly waiting: Set<PoolReservation>;
}

/** A class takes less memory: one is made for each request that waits. */
class PoolReservation implements Reservation {
  readonly #pool: Pool;
  readonly #giveUp: (() => void) | undefined;
  #since = 0;
  bytes = 0;

  constructor(pool: Pool, giveUp: (() => void) | undefined) {
    this.#pool = pool;
    this.#giveUp = giveUp;
  }

  hasRoom(bytes: number): boolean {
    return this.#fits(bytes) || this.#reclaim(bytes);
  }

  grow(bytes: number): boolean {
    const hasRoom = this.hasRoom(bytes);
    if (hasRoom) this.set(this.bytes + bytes);
    return hasRoom;
  }

  set(bytes: number): void {
    const { waiting, now } = this.#pool;
    if (this.#giveUp !== undefined && this.bytes > 0 !== bytes > 0) {
      if (bytes === 0) waiting.delete(this);
      else {
        waiting.add(this);
        this.#since = now();
      }
    }
    this.#pool.bytes += bytes - this.bytes;
    this.bytes = bytes;
  }

  release(): void {
    this.set(0);
  }

  #fits(bytes: number): boolean {
    const free = this.#pool.bytesMax - this.#pool.bytes;
    return this.bytes + bytes <= (free + this.bytes) * holderShare;
  }

  /** Makes the longest waiting holders give up until `bytes` fit; false if they do not. */
  #reclaim(bytes: number): boolean {
    const { waiting, now } = this.#pool;
    const end = now() - patienceMilliseconds;
    for (const holder of waiting) {
      if (holder.#since > end) break;
      holder.release();
      holder.#giveUp?.();
      if (this.#fits(bytes)) return true;
    }
    return false;
  }
}
