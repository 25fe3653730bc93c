/**
 * A subscriber: one client's subscription, whatever the transport that delivers its events; and the
 * event that all subscribers of a group share.
 */

import type { Config } from '../../config.ts';
import type { ConnectionMemory, MemoryPool, Reservation } from '../../memory-pool.ts';
import type { GraphqlError } from '../errors.ts';

/** Why a subscription ends, other than by the client or the end of the process. */
export type Ending =
  /** The source has no more events. */
  | { readonly kind: 'complete' }
  /** It never started, because its variables are invalid, or it failed. */
  | { readonly kind: 'refused'; readonly errors: readonly GraphqlError[] }
  /** Its account was removed, or has another password. */
  | { readonly kind: 'revoked'; readonly errors: readonly GraphqlError[] }
  /** Events came faster than they could be executed. */
  | { readonly kind: 'overrun' };

/** Its methods must not throw. */
export interface Subscriber {
  /** What its connection holds. */
  readonly memory: ConnectionMemory;
  /**
   * Sends the event, if the subscription has not ended. Returns false if more bytes are queued for
   * the client than may be: its subscription ends instead, and leaves its group (R30).
   */
  next(event: SharedEvent): boolean;
  /** Called at most once, and never after the subscriber has left its group. */
  end(ending: Ending): void;
}

/** The limit for bytes queued for one client, if there are very many clients. */
export const queueBytesMin = 65_536;
/** A client's share is at most this part of REQUEST_MEMORY_BYTES_MAX, even if there is only one. */
const sharesMin = 128;

/**
 * Returns the current limit for bytes queued for one client (R30): its share of
 * REQUEST_MEMORY_BYTES_MAX. `clients`: the sockets, or the event streams, that share it.
 */
export function createQueueLimit(
  { requestMemoryBytesMax }: Pick<Config, 'requestMemoryBytesMax'>,
  clients: { readonly size: number },
): () => number {
  return () => Math.max(queueBytesMin, requestMemoryBytesMax / Math.max(sharesMin, clients.size));
}

/** Up to this many bytes an event is copied after its start: one write is cheaper than three. */
const copiedBytesMax = 2_048;
/** Forms kept for one event, each with a different start (operation id), until it is delivered. */
const formsMax = 64;

/** One event of a group: executed once, and in memory once, for all its subscribers. */
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
   * it is counted even if there is no room: an event must reach those that read (R30). Each client
   * holds all of it.
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
