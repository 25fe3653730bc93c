/** One event of a group. It is executed once, and in memory once, for all its subscribers. */

import type { MemoryPool, Reservation } from '../../memory-pool.ts';

/** Up to this many bytes an event is copied after its prefix: one write is cheaper than two. */
export const copiedBytesMax = 2_048;

/** Bytes to write. If `body` is present, it and the end of the message follow `head`. */
export interface EventForm {
  readonly head: Buffer;
  readonly body: Buffer | undefined;
}

export class SharedEvent {
  /** The execution result as JSON in UTF-8. */
  readonly json: Buffer;
  /** True if the group had an event in the same iteration of the event loop. */
  readonly isFurther: boolean;
  /** The forms for each transport, keyed by what precedes the event. */
  readonly forms = new Map<string, EventForm>();
  readonly #reservation: Reservation;
  /** The clients that have not taken all of it. */
  #waiting = 0;

  /** `pool` accounts for the event while a client has not taken it. */
  constructor(json: Buffer, pool: Pick<MemoryPool, 'open'>, isFurther: boolean) {
    this.json = json;
    this.isFurther = isFurther;
    this.#reservation = pool.open();
  }

  /**
   * Call it for a long event that could not be sent at once. It is then counted, once for all
   * clients, until each of them has called the returned function once. It is in memory already, so
   * it is counted even if there is no room: an event must reach those that read (R30).
   */
  reserve(): () => void {
    this.#waiting += 1;
    if (this.#waiting === 1) this.#reservation.set(this.json.length);
    return () => {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#reservation.release();
    };
  }
}
