/**
 * The bytes of one part while it arrives, gathered into batches for few, large writes. Receiving
 * goes on while a batch is worked on; whoever fills it stops when too much waits.
 */

import type { ByteSource } from '../byte-source.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** One write of 1 MiB costs two thirds of sixteen writes of 64 KiB. */
const batchBytes = 1024 * 1024;
/** Tiny chunks are counted too: each costs memory beside its bytes. */
const batchChunks = 256;

export class PartContent implements ByteSource {
  readonly #options: PartContentOptions;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #ended = false;
  #error: Error | undefined;
  /** Settles the promise of whoever waits for a batch. */
  #waiting: PromiseWithCallbacks | undefined;

  constructor(options: PartContentOptions) {
    this.#options = options;
  }

  isSole(chunk: Buffer): boolean {
    return this.#options.sole.has(chunk);
  }

  /** Where this is true, filling should stop until `onTaken`. */
  get isFull(): boolean {
    return this.#bytes >= batchBytes || this.#chunks.length >= batchChunks;
  }

  /** About 1 MiB, or what is left of the part. */
  next(): MaybePromise<readonly Buffer[]> {
    if (this.#error !== undefined) throw this.#error;
    if (this.#ended || this.isFull) return this.#take();
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.isFull) this.#give();
  }

  end(): void {
    this.#ended = true;
    this.#give();
  }

  /** What has arrived is let go. */
  fail(error: Error): void {
    this.#error ??= error;
    this.#chunks = [];
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  #give(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    waiting.resolve(this.#take());
  }

  #take(): readonly Buffer[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#bytes = 0;
    this.#options.onTaken();
    return chunks;
  }
}

interface PartContentOptions {
  /** Called when there is room again. */
  readonly onTaken: () => void;
  /** The chunks whose memory holds nothing else. */
  readonly sole: WeakSet<Buffer>;
}

interface PromiseWithCallbacks {
  readonly resolve: (batch: readonly Buffer[]) => void;
  readonly reject: (error: Error) => void;
}
