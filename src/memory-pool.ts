/**
 * One bound on what all requests together hold in memory while they are served: bodies that are
 * being received, operations that run or wait, and answers that their clients have not taken yet.
 *
 * Two rules keep a few clients from having all of it. Nobody gets more than three quarters of what
 * is free: what is large leaves room for what is small. And where room is missing, those whose
 * clients have not taken their answers within some seconds give up theirs: the longest waiting
 * first.
 */

export interface MemoryPool {
  /** In bytes. */
  readonly bytesMax: number;
  /** What is held now. May pass `bytesMax` by what was counted with `set`. */
  readonly bytes: number;
  /**
   * A holder of nothing so far. The opener releases it, on every way out. `giveUp`: for what
   * waits for a client only; it ends that client's connection when others need the room.
   */
  open(giveUp?: () => void): Reservation;
}

/** What one holder (a body, an answer, a socket) has taken of the pool. */
export interface Reservation {
  readonly bytes: number;
  /** Whether it could take so many bytes more now; for that, others may have to give up theirs. */
  hasRoom(bytes: number): boolean;
  /** Takes so many bytes more. False where there is no room for them: then nothing is taken. */
  grow(bytes: number): boolean;
  /** For what is in memory already and cannot be refused any more: holds exactly so many bytes. */
  set(bytes: number): void;
  /** Gives everything back. May be called twice. */
  release(): void;
}

/** A body, an answer or a queue up to this size is counted as a part of its connection. */
export const uncountedBytesMax = 16_384;

/** The pool of who watches the server: some tens of answers of `/metrics`. */
export const adminPoolBytes = 4 * 1024 * 1024;

/** Of what is free, one holder may take so much. */
const holderShare = 0.75;
/** A client has at least this long to take what waits for it, however scarce the room is. */
const patienceMilliseconds = 5_000;

/** A pool of `bytesMax` bytes. `now`: milliseconds of a clock that only rises. */
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
  /** Those that can give up, in the order in which they began to hold something. */
  readonly waiting: Set<PoolReservation>;
}

/** A class, because one is made for each request that waits. */
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

  /** Who has waited for long gives up its part until so many bytes fit; false where they do not. */
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
