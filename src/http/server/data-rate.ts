/**
 * The minimum data rate (R39). A client that owes its body, or is owed output, and moves less than
 * a small rate for some seconds loses its connection; one that moves keeps it, however long it
 * takes. While memory is short the rate rises, so that it is not short for long.
 */

import type { MemoryPool } from '../../memory-pool.ts';

/** What a connection waits for. `response`: the server makes it, so that nothing has to move. */
export type Awaited = 'nothing' | 'body' | 'output' | 'response';

export interface DataRate {
  /** Bytes per second. */
  readonly bytes: number;
  /** Bytes that moved buy time at that rate, up to so many seconds. */
  readonly secondsMax: number;
  /** How long a client may be idle while the server makes its response. */
  readonly idleSecondsMax: number;
}

/** A modem is faster. */
const bytesMin = 256;
/** While memory is short, the rate doubles each second up to this. */
const bytesMax = 16_384;
/** The time until a body begins, and all that a client has while memory is short. */
const graceSeconds = 5;

/** Returns a function that is called each second, and returns the rate of that second. */
export function createDataRate(pool: MemoryPool, idleSecondsMax: number): () => DataRate {
  let bytes = bytesMin;
  return () => {
    bytes = pool.isShort ? Math.min(2 * bytes, bytesMax) : bytesMin;
    const secondsMax = pool.isShort ? Math.min(graceSeconds, idleSecondsMax) : idleSecondsMax;
    return { bytes, secondsMax, idleSecondsMax };
  };
}

/** The time that one connection has left. */
export class Patience {
  #awaited: Awaited = 'nothing';
  #bytes = 0;
  #seconds = 0;

  /**
   * Call it once a second. `bytes`: moved so far in the awaited direction. Returns true if the
   * client was too slow. Calls are counted, not time: a server that was busy reads late.
   */
  isOver(awaited: Awaited, bytes: number, rate: DataRate): boolean {
    const moved = bytes - this.#bytes;
    const hasBegun = awaited !== this.#awaited;
    this.#awaited = awaited;
    this.#bytes = bytes;
    if (awaited === 'nothing') return false;
    if (awaited === 'response') {
      if (hasBegun || moved > 0) this.#seconds = rate.idleSecondsMax;
    } else if (hasBegun) {
      this.#seconds =
        awaited === 'body' ? Math.min(graceSeconds, rate.secondsMax) : rate.secondsMax;
    } else this.#seconds = Math.min(this.#seconds + moved / rate.bytes, rate.secondsMax);
    this.#seconds -= 1;
    return this.#seconds < 0;
  }
}
