/** Ids (R4): version 7 UUIDs in lower case, read in either case. */

import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

/**
 * Random bytes are drawn for so many ids at once: that makes four times as many ids a second as
 * `v7` with random bytes of its own, which also has no other clock than the system's to order them
 * by.
 */
const idsPerDraw = 256;
const randomBytesPerId = 16;

/** A source of new ids; ids that it makes later sort later, also within one millisecond. */
export function createIdSource(now: () => Date): () => string {
  const pool = new Uint8Array(idsPerDraw * randomBytesPerId);
  let used = pool.length;
  let msecs = 0;
  let seq = 0;

  return () => {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const random = pool.subarray(used, used + randomBytesPerId);
    used += randomBytesPerId;
    const time = now().getTime();
    if (time > msecs) {
      msecs = time;
      // A random start with room above it, so that the count cannot run over (RFC 9562 §6.2).
      seq = ((random[0] ?? 0) << 16) | ((random[1] ?? 0) << 8) | (random[2] ?? 0);
    } else {
      seq += 1;
    }
    return v7({ random, msecs, seq });
  };
}

/** Any UUID in its text form (RFC 9562 §4), whatever its version: 8-4-4-4-12 hex digits. */
const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The id in lower case, or undefined for text that is no UUID and so names nothing (R4). */
export function toId(text: string): string | undefined {
  if (text.length !== 36) return undefined;
  if (uuidText.test(text)) return text;
  const lower = text.toLowerCase();
  return uuidText.test(lower) ? lower : undefined;
}

/** An article's id in a path (R4): digits only, no sign, no leading zero, a safe integer. */
export function toArticleId(text: string): number | undefined {
  if (!/^[1-9][0-9]{0,15}$/.test(text)) return undefined;
  const id = Number(text);
  return Number.isSafeInteger(id) ? id : undefined;
}
