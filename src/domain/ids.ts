/** Ids (R4): version 7 UUIDs in lower case, read in either case. */

import { v7 } from 'uuid';

/** A new id; ids made later sort later. */
export function createId(): string {
  return v7();
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
