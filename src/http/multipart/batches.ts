/** A queue between a source that pushes and one reader that takes all that has come so far. */

import type { MaybePromise } from '../../maybe-promise.ts';

export interface BatchesOptions {
  /** The queue is full with so many items, or with items of so many bytes. */
  readonly countMax: number;
  readonly bytesMax: number;
  /** Called when there is room again. */
  readonly onTaken: () => void;
}

export class Batches<T> {
  readonly #options: BatchesOptions;
  #items: T[] = [];
  #bytes = 0;
  #ended = false;
  #error: Error | undefined;
  /** Settles the promise of the reader. */
  #waiting: { resolve(batch: readonly T[]): void; reject(error: Error): void } | undefined;

  constructor(options: BatchesOptions) {
    this.#options = options;
  }

  /** Where this is true, the source should stop until `onTaken`. */
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

  /** The reader gets this error instead of what it has not taken. */
  fail(error: Error): void {
    this.#error = error;
    this.#items = [];
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  /** All items once the queue is full or at its end; empty after the end. One call at a time. */
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
