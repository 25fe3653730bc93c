/** One event of a group: made once, and in memory once, for all of its members. */

import type { Reservation } from '../../memory-pool.ts';

/** An event up to this size is copied behind what precedes it: one write is cheaper than two. */
export const copiedBytesMax = 2_048;

/** Bytes ready to be written; `body`, and what ends a message, follow `head` in a long one. */
export interface EventForm {
  readonly head: Buffer;
  readonly body: Buffer | undefined;
}

export class SharedEvent {
  /** The execution result as JSON in UTF-8. */
  readonly json: Buffer;
  /** What transports made of it, by what it was made for: made once for all that need the same. */
  readonly forms = new Map<string, EventForm>();
  readonly #held: Reservation;
  #holders = 0;

  /** `held`: its part of the memory for what waits, empty so far. */
  constructor(json: Buffer, held: Reservation) {
    this.json = json;
    this.#held = held;
  }

  /** A member could not send all of it at once: it counts until each such member is through. */
  hold(): void {
    this.#holders += 1;
    if (this.#holders === 1) this.#held.set(this.json.length);
  }

  /** To be called once for each `hold`; a function of its own, so that no member needs one. */
  readonly letGo = (): void => {
    this.#holders -= 1;
    if (this.#holders === 0) this.#held.release();
  };
}
