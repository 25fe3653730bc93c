/** One event of a group. It is executed once, and in memory once, for all its subscribers. */

import type { MemoryPool, Reservation } from '../../memory-pool.ts';

/** Up to this many bytes an event is copied after its start: one write is cheaper than three. */
const copiedBytesMax = 2_048;
/** Forms kept for one event, each with a different start (operation id), until it is delivered. */
const formsMax = 64;

export class SharedEvent {
  /** The execution result as JSON in UTF-8. */
  readonly json: Buffer;
  /** True if the group had an event in the same iteration of the event loop. */
  readonly isFurther: boolean;
  /** What is sent, by its start. */
  readonly #forms = new Map<string, readonly Buffer[]>();
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
   * Returns what is sent: a header of the transport, `start`, the event, `end`. It is made once for
   * equal starts. A long event is a piece of its own, in memory once for all clients (R30).
   */
  toPieces(start: string, end: Buffer, toHeader: (length: number) => Buffer): readonly Buffer[] {
    const known = this.#forms.get(start);
    if (known !== undefined) return known;
    const { json } = this;
    const text = Buffer.from(start);
    const head = [toHeader(text.length + json.length + end.length), text];
    const isShort = json.length <= copiedBytesMax;
    const pieces = isShort
      ? [Buffer.concat([...head, json, end])]
      : [Buffer.concat(head), json, end];
    if (this.#forms.size < formsMax) this.#forms.set(start, pieces);
    return pieces;
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
