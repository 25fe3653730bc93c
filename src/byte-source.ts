/** Bytes on their way from whoever receives them to whoever keeps them. */

import type { MaybePromise } from './maybe-promise.ts';

export interface ByteSource {
  /**
   * The next batch of chunks; empty at the end. Throws, or rejects, where the bytes broke off. One
   * batch is asked for at a time.
   */
  next(): MaybePromise<readonly Buffer[]>;
  /** True where nothing else is in the memory of a chunk: whoever took it may give it back. */
  isSole(chunk: Buffer): boolean;
}
