/** Bytes on their way from the room that receives them to the room that keeps them. */

import type { MaybePromise } from './maybe-promise.ts';

export interface ByteSource {
  /**
   * The next batch of chunks; empty at the end. Throws, or rejects, where the bytes broke off. One
   * batch is asked for at a time. The chunks belong to the caller.
   */
  next(): MaybePromise<readonly Buffer[]>;
}
