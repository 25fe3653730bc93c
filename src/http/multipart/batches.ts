/** A queue between a source that pushes items and a reader that takes all queued items at once. */

import type { MaybePromise } from '../../maybe-promise.ts';
import type { Reservation } from '../../memory-pool.ts';

export interface BatchesOptions {
  /** The queue is full with this many items, or with items of `bytesMax` bytes. */
  readonly countMax: number;
  readonly bytesMax: number;
  /** Counts what is queued, and what was taken last. Without room the queue is full. */
  readonly room?: Reservation;
  /** Called when the queue may have room again. */
  readonly onTaken: () => void;
}

export class Batches<T> {
  readonly #options: BatchesOptions;
  #items: T[] = [];
  #bytes = 0;
  #bytesTaken = 0;
  #ended = false;
  #error: Error | undefined;
  /** The pending promise of the reader. */
  #waiting: { resolve(batch: readonly T[]): void; reject(error: Error): void } | undefined;

  constructor(options: BatchesOptions) {
    this.#options = options;
  }

  /** While true, the source should pause until `onTaken`. */
  get isFull(): boolean {
    const { countMax, bytesMax, room } = this.#options;
    const isFull = this.#items.length >= countMax || this.#bytes >= bytesMax;
    return isFull || (this.#bytes > 0 && room?.hasRoom(bytesMax) === false);
  }

  push(item: T, bytes: number): void {
    this.#items.push(item);
    this.#bytes += bytes;
    this.#count(bytes);
    if (this.isFull) this.#give();
  }

  end(): void {
    this.#ended = true;
    this.#give();
  }

  /** Discards the queued items; the reader gets this error instead. */
  fail(error: Error): void {
    this.#error = error;
    this.#items = [];
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  /** All items, once the queue is full or ended; empty after the end. One call at a time. */
  next(): MaybePromise<readonly T[]> {
    if (this.#error !== undefined) throw this.#error;
    if (this.#ended || this.isFull) return this.#take();
    // The last batch is not in use any more.
    this.#count(-this.#bytesTaken);
    this.#bytesTaken = 0;
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#options.onTaken();
    });
  }

  #give(): void {
    this.#waiting?.resolve(this.#take());
    this.#waiting = undefined;
  }

  #take(): readonly T[] {
    const items = this.#items;
    this.#items = [];
    this.#count(-this.#bytesTaken);
    this.#bytesTaken = this.#bytes;
    this.#bytes = 0;
    this.#options.onTaken();
    return items;
  }

  #count(bytes: number): void {
    const { room } = this.#options;
    room?.set(room.bytes + bytes);
  }
}
