/** Ids (R4): new ones in order, and those that clients send. */

import { hash, randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

/**
 * Random bytes are generated for this many ids at once. That is four times as fast as `v7` with
 * random bytes of its own, and `v7` alone would read the system's clock instead of `now`.
 */
const idsPerBatch = 256;
const randomBytesPerId = 16;

/** When the ids of the demo data were made, in milliseconds. */
const firstMilliseconds = 0x019b_8d5e_9c00;

/**
 * Returns a source of new ids, which sort in the order in which they were made, and behind those of
 * the demo data also if the clock is wrong.
 */
export function createIdSource(now: () => Date): () => string {
  const pool = new Uint8Array(idsPerBatch * randomBytesPerId);
  let used = pool.length;
  let msecs = firstMilliseconds + 1;
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
      // A random start below the maximum, so that the counter does not overflow (RFC 9562 §6.2).
      seq = ((random[0] ?? 0) << 16) | ((random[1] ?? 0) << 8) | (random[2] ?? 0);
    } else {
      seq += 1;
    }
    return v7({ random, msecs, seq });
  };
}

/**
 * An id that is the same at any time and on every machine: a version 7 id (R4) of a time in
 * milliseconds, with a hash of the text in place of its 74 random bits.
 */
export function deriveId(milliseconds: number, text: string): string {
  const digest = hash('sha256', text);
  const time = milliseconds.toString(16).padStart(12, '0');
  // RFC 9562 §4.1, §4.2: the variant's two bits, and the version.
  const variant = ((Number.parseInt(digest.charAt(16), 16) & 0x3) | 0x8).toString(16);
  const end = `${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digest.slice(13, 16)}-${end}`;
}

/** A UUID of any version in text form (RFC 9562 §4): 8-4-4-4-12 hex digits. */
const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The id in lower case; undefined for text that is not a UUID and so identifies nothing (R4). */
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
