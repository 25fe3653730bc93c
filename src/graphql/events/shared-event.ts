/** One event of a group: made once, and in memory once, for all of its members. */

import type { MemoryPool, Reservation } from '../../memory-pool.ts';

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
  /** How each of them is ended. */
  readonly #holders = new Set<{ readonly giveUp: () => void }>();

  /** `pool`: of what waits; the event takes no part of it so far. */
  constructor(json: Buffer, pool: Pick<MemoryPool, 'open'>) {
    this.json = json;
    this.#held = pool.open(() => {
      for (const { giveUp } of this.#holders) giveUp();
    });
  }

  /**
   * A member could not send all of it at once: it counts until each such member is through, which
   * it says by what it gets back, once or more often. `giveUp` ends the member.
   */
  hold(giveUp: () => void): () => void {
    const holder = { giveUp };
    this.#holders.add(holder);
    if (this.#holders.size === 1) this.#held.set(this.json.length);
    return () => {
      if (this.#holders.delete(holder) && this.#holders.size === 0) this.#held.release();
    };
  }
}
