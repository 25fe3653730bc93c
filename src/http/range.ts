/** One range of the bytes of an answer (RFC 9110 §14). */

import { AppError } from '../errors.ts';

/** From `start` to before `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** `bytes=0-99`, `bytes=100-` or `bytes=-100`: the last hundred. */
const pattern = /^bytes=[ \t]*(?:([0-9]+)-([0-9]*)|-([0-9]+))[ \t]*$/i;

/**
 * What a `Range` header asks of `size` bytes. Undefined where all of them are to be sent: without a
 * header, and for one that §14.2 lets a server ignore, such as several ranges or another unit.
 * Throws `range_not_satisfiable`.
 */
export function toByteRange(header: string | undefined, size: number): ByteRange | undefined {
  const found = header === undefined ? undefined : pattern.exec(header);
  if (!found) return undefined;
  const [, first, last = '', suffix] = found;
  const start = first === undefined ? Math.max(0, size - Number(suffix)) : Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  const end = last === '' ? size : Math.min(size, Number(last) + 1);
  // An empty range cannot be written in `Content-Range`.
  if (start < end) return { start, end };
  if (size === 0 && Number(suffix) > 0) return undefined;
  throw new AppError('range_not_satisfiable', 'The range is beyond the end.', {
    contentRange: `bytes */${size}`,
  });
}
