/** A stream of bytes from one part of the service to another: an upload to the file store. */

import type { MaybePromise } from './maybe-promise.ts';

export interface ByteSource {
  /**
   * Returns the next batch of chunks, which the caller then owns; an empty batch at the end. Throws
   * or rejects if the bytes ended early. Call it again only after the previous call has settled.
   */
  next(): MaybePromise<readonly Buffer[]>;
}
