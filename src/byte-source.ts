/** Bytes on their way from whoever receives them to whoever keeps them. */

import type { MaybePromise } from './maybe-promise.ts';

export interface ByteSource {
  /**
   * The next batch of chunks; empty at the end. Whoever takes it has it for itself, and may give
   * its memory back. Throws, or rejects, where the bytes broke off. One batch is asked for at a
   * time.
   */
  next(): MaybePromise<readonly Buffer[]>;
}
