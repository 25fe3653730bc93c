/** One event of a group. It is executed once, and in memory once, for all members of the group. */

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
  readonly #held: Reservation;
  /** The members that still have to send it. */
  #holders = 0;

  /** `pool` accounts for the event while members hold it. */
  constructor(json: Buffer, pool: Pick<MemoryPool, 'open'>, isFurther: boolean) {
    this.json = json;
    this.isFurther = isFurther;
    this.#held = pool.open();
  }

  /**
   * Call it if a member could not send the whole event. The event counts in the pool until each
   * such member calls the returned function once.
   */
  hold(): () => void {
    this.#holders += 1;
    if (this.#holders === 1) this.#held.set(this.json.length);
    return () => {
      this.#holders -= 1;
      if (this.#holders === 0) this.#held.release();
    };
  }
}
