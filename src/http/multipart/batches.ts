/** A queue between a source that pushes items and a reader that takes all queued items at once. */

import type { MaybePromise } from '../../maybe-promise.ts';

export interface BatchesOptions {
  /** The queue is full with this many items, or with items of `bytesMax` bytes. */
  readonly countMax: number;
  readonly bytesMax: number;
  /** Called when the queue has room again. */
  readonly onTaken: () => void;
}

export class Batches<T> {
  readonly #options: BatchesOptions;
  #items: T[] = [];
  #bytes = 0;
  #ended = false;
  #error: Error | undefined;
  /** The pending promise of the reader. */
  #waiting: { resolve(batch: readonly T[]): void; reject(error: Error): void } | undefined;

  constructor(options: BatchesOptions) {
    this.#options = options;
  }

  /** While true, the source should pause until `onTaken`. */
  get isFull(): boolean {
    const { countMax, bytesMax } = this.#options;
    return this.#items.length >= countMax || this.#bytes >= bytesMax;
  }

  push(item: T, bytes: number): void {
    this.#items.push(item);
    this.#bytes += bytes;
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
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  #give(): void {
    this.#waiting?.resolve(this.#take());
    this.#waiting = undefined;
  }

  #take(): readonly T[] {
    const items = this.#items;
    this.#items = [];
    this.#bytes = 0;
    this.#options.onTaken();
    return items;
  }
}
