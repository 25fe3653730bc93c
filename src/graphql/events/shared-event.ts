/** An event of a group: executed once, and in memory once, for all subscribers of the group. */

import type { ConnectionMemory, MemoryPool, Reservation } from '../../memory-pool.ts';
import type { Place } from '../../store/comments-after.ts';

/** A longer event is not copied behind its prefix; for a short one, one write costs less. */
const copiedBytesMax = 2_048;
/** Limit for the encodings of an event that are kept, one for each prefix (operation id). */
const encodingsMax = 64;

type Facts = Pick<SharedEvent, 'id' | 'place' | 'isSameIteration'>;

export class SharedEvent {
  /** The id of its comment. */
  readonly id: string;
  /** The place of its comment. */
  readonly place: Place;
  /** True if the group had another event in the same iteration of the event loop. */
  readonly isSameIteration: boolean;
  /** The execution result as JSON in UTF-8. */
  readonly json: Buffer;
  /** The bytes to send, by prefix. */
  readonly #encodings = new Map<string, readonly Buffer[]>();
  readonly #reservation: Reservation;
  /** The clients that have not taken all of the event. */
  #waiting = 0;

  /** `pool` accounts for the event while a client has not taken it. */
  constructor(json: Buffer, pool: Pick<MemoryPool, 'open'>, facts: Facts) {
    this.json = json;
    this.id = facts.id;
    this.place = facts.place;
    this.isSameIteration = facts.isSameIteration;
    this.#reservation = pool.open();
  }

  /**
   * Returns the bytes to send: a header of the transport, `prefix`, the event, `suffix`. They are
   * made once for equal prefixes. A long event is a piece of its own, in memory once for all
   * clients (R30).
   */
  toPieces(
    prefix: string,
    suffix: Buffer,
    toHeader: (length: number) => Buffer,
  ): readonly Buffer[] {
    const kept = this.#encodings.get(prefix);
    if (kept !== undefined) return kept;
    const { json } = this;
    const text = Buffer.from(prefix);
    const head = [toHeader(text.length + json.length + suffix.length), text];
    const pieces =
      json.length <= copiedBytesMax
        ? [Buffer.concat([...head, json, suffix])]
        : [Buffer.concat(head), json, suffix];
    if (this.#encodings.size < encodingsMax) this.#encodings.set(prefix, pieces);
    return pieces;
  }

  /**
   * Counts a long event that could not be sent at once. Call the returned function once, when the
   * client has taken the event. `memory`, the connection, counts the whole event, because it sets
   * the data rate that the client owes. The pool counts the event once for all clients, and also if
   * the pool is full: the event is in memory already, and must reach those that read (R30).
   */
  reserve(memory: ConnectionMemory): () => void {
    const { length } = this.json;
    this.#waiting += 1;
    memory.bytes += length;
    if (this.#waiting === 1) this.#reservation.set(length);
    return () => {
      this.#waiting -= 1;
      memory.bytes -= length;
      if (this.#waiting === 0) this.#reservation.release();
    };
  }
}
