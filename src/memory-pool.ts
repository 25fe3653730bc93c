/**
 * One bound on what all requests together hold in memory while they are served: bodies that are
 * being received, operations that run or wait, and answers that their clients have not taken yet.
 */

export interface MemoryPool {
  /** In bytes. */
  readonly bytesMax: number;
  /** What is held now. May pass `bytesMax` by what was counted with `set`. */
  readonly bytes: number;
  /** A holder of nothing so far. Whoever opens one releases it, on every way out. */
  open(): Reservation;
}

/** What one holder (a body, an answer, a socket) has taken of the pool. */
export interface Reservation {
  readonly bytes: number;
  /** Takes so many bytes more. False where the pool has less left: then nothing is taken. */
  grow(bytes: number): boolean;
  /** For what is in memory already and cannot be refused any more: holds exactly so many bytes. */
  set(bytes: number): void;
  /** Gives everything back. May be called twice. */
  release(): void;
}

/** A pool of `bytesMax` bytes. */
export function createMemoryPool(bytesMax: number): MemoryPool {
  const pool = { bytesMax, bytes: 0, open: (): Reservation => new PoolReservation(pool) };
  return pool;
}

interface Counter {
  readonly bytesMax: number;
  bytes: number;
}

/** A class, because one is made for each request that waits. */
class PoolReservation implements Reservation {
  readonly #pool: Counter;
  bytes = 0;

  constructor(pool: Counter) {
    this.#pool = pool;
  }

  grow(bytes: number): boolean {
    if (this.#pool.bytes + bytes > this.#pool.bytesMax) return false;
    this.set(this.bytes + bytes);
    return true;
  }

  set(bytes: number): void {
    this.#pool.bytes += bytes - this.bytes;
    this.bytes = bytes;
  }

  release(): void {
    this.set(0);
  }
}
