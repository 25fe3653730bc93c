/** Reads a multipart/form-data body, with a function that is called for each part. */

import { poolIsFull, type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import type { OwnedBuffers } from '../../owned-buffers.ts';
import type { HttpRequest } from '../message.ts';
import { type OwnOrigins, refuseForeign } from '../origins.ts';
import { ArrivedBytes } from '../server/arrived-bytes.ts';
import { memoryOf } from '../server/body.ts';
import { findBoundary, type PartHead, tooLarge } from './headers.ts';
import { Parts } from './parts.ts';

/** The content of a part in batches. Fails if the body ends early. */
type PartContent = AsyncIterable<OwnedBuffers>;

interface MultipartRules extends OwnOrigins {
  /** The limit for the whole body. */
  readonly uploadBytesMax: number;
}

/**
 * Called with each part in turn. When its promise resolves, content that it did not read is
 * discarded and the next part follows. A rejection ends the reading.
 */
export type PartReader = (part: PartHead, content: PartContent) => Promise<void>;

/**
 * Reads all parts. Rejects with `unsupported_media_type`, `foreign_origin`, `invalid_multipart`,
 * `content_too_large`, ClientGone, or the error of `onPart`; by then no part is being read and the
 * request has no listeners.
 *
 * Browsers send forms of this type to other sites without a preflight. R27 is checked here, so that
 * no route can omit it.
 */
export async function readMultipart(
  request: HttpRequest,
  rules: MultipartRules,
  onPart: PartReader,
): Promise<void> {
  const boundary = findBoundary(request.header('content-type'));
  refuseForeign(request, rules);
  if (Number(request.header('content-length')) > rules.uploadBytesMax) {
    throw tooLarge('The multipart body', rules.uploadBytesMax);
  }
  const parts = new Parts(request, boundary, rules.uploadBytesMax);
  for await (const { head, content } of parts.read()) await onPart(head, content);
}

/**
 * Reads the whole content of a text part, at most `bytesMax` bytes. Reserves the memory that it can
 * take as JSON; throws `overloaded` if there is no memory.
 */
export async function readPart(
  content: PartContent,
  bytesMax: number,
  reservation: Reservation,
): Promise<Buffer> {
  const bytes = new ArrivedBytes();
  let reserved = 0;
  for await (const batch of content) {
    for (const chunk of batch) bytes.append(chunk);
    if (bytes.length > bytesMax) throw tooLarge('A text part', bytesMax);
    if (bytes.length <= uncountedBytesMax) continue;
    if (!reservation.grow(memoryOf(bytes.length) - reserved)) throw poolIsFull();
    reserved = memoryOf(bytes.length);
  }
  return bytes.take();
}
