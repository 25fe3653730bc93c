/** Parses `Range` for one range of bytes (RFC 9110 §14). */

import { AppError } from '../errors.ts';

/** From `start` up to, not including, `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** `bytes=0-99`, `bytes=100-` or `bytes=-100` (the last hundred bytes). */
const pattern = /^bytes=[ \t]*(?:([0-9]+)-([0-9]*)|-([0-9]+))[ \t]*$/i;

/**
 * The range of `size` bytes that a `Range` header requests. Undefined if all bytes are to be sent:
 * without the header, and for one that §14.2 allows to ignore, such as several ranges or another
 * unit. Throws `range_not_satisfiable`.
 */
export function toByteRange(header: string | undefined, size: number): ByteRange | undefined {
  const found = header === undefined ? undefined : pattern.exec(header);
  if (!found) return undefined;
  const [, first, last = '', suffix] = found;
  const start = first === undefined ? Math.max(0, size - Number(suffix)) : Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  const end = last === '' ? size : Math.min(size, Number(last) + 1);
  // `Content-Range` cannot express an empty range.
  if (start < end) return { start, end };
  if (size === 0 && Number(suffix) > 0) return undefined;
  throw new AppError('range_not_satisfiable', 'The range is beyond the end.', {
    headers: ['Content-Range', `bytes */${size}`],
  });
}
