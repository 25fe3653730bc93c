/**
 * Gathers the chunks of a stream into batches for few, large writes. Receiving goes on while a
 * batch is written; the stream is paused when too much waits.
 */

import type { Readable } from 'node:stream';

/** One write of 1 MiB costs two thirds of sixteen writes of 64 KiB. */
const batchBytes = 1024 * 1024;
/** Tiny chunks are counted too: each costs memory beside its bytes. */
const batchChunks = 256;

export class ChunkBatches {
  readonly #content: Readable;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  /** Listens at once. The stream has an error path from here until `release()`. */
  constructor(content: Readable) {
    this.#content = content;
    content
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose);
  }

  /** The next batch, empty at the end. Rejects with the stream's error. */
  async next(): Promise<readonly Buffer[]> {
    if (!this.#ended && this.#error === undefined && !this.#isFull()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#error !== undefined) throw this.#error;
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#bytes = 0;
    if (!this.#ended && this.#content.isPaused()) this.#content.resume();
    return chunks;
  }

  release(): void {
    this.#chunks = [];
    this.#content
      .off('data', this.#onData)
      .off('end', this.#onEnd)
      .off('error', this.#onError)
      .off('close', this.#onClose);
  }

  #isFull(): boolean {
    return this.#bytes >= batchBytes || this.#chunks.length >= batchChunks;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (!this.#isFull()) return;
    if (this.#wake === undefined) this.#content.pause();
    else this.#wakeUp();
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
    this.#wakeUp();
  };

  readonly #onError = (error: Error): void => {
    this.#error ??= error;
    this.#wakeUp();
  };

  readonly #onClose = (): void => {
    if (!this.#ended) this.#onError(new Error('the stream was destroyed before its end'));
  };

  #wakeUp(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
