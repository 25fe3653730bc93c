/** JSON Pointer (RFC 6901): strict pointers and array indices, own members only. */

import type { Json, JsonObject } from '../store/model.ts';
import { isJsonArray } from './json-value.ts';

export interface JsonPointer {
  readonly text: string;
  /** The unescaped reference tokens; empty for the whole document. */
  readonly tokens: readonly string[];
}

/** An object or array. */
export type Container = readonly Json[] | JsonObject;

/** Parses a pointer (RFC 6901 §3); undefined if it is malformed. */
export function parsePointer(text: string): JsonPointer | undefined {
  const tokens = text.split('/');
  if (tokens.shift() !== '') return undefined;
  // Few pointers have escapes, and checking each token costs as much as the rest of the patch.
  if (!text.includes('~')) return { text, tokens };
  if (/~(?![01])/.test(text)) return undefined;
  return { text, tokens: tokens.map(unescapeToken) };
}

/** The order matters: `~01` stands for `~1` (RFC 6901 §4). */
function unescapeToken(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** True if `inner` is below `outer`. A token has only one spelling, so texts are compared. */
export function isBelow(inner: JsonPointer, outer: JsonPointer): boolean {
  return inner.text.startsWith(`${outer.text}/`);
}

/** The value that the first `count` tokens of a pointer lead to; undefined where there is none. */
export function findValue(
  document: Json,
  tokens: readonly string[],
  count = tokens.length,
): Json | undefined {
  let value: Json | undefined = document;
  for (let at = 0; at < count; at += 1) {
    if (!isContainer(value)) return undefined;
    value = findChild(value, tokens[at] as string); // within its length
  }
  return value;
}

/** The value that one token leads to, or undefined. */
export function findChild(container: Container, token: string): Json | undefined {
  if (!isJsonArray(container))
    return Object.hasOwn(container, token) ? container[token] : undefined;
  const index = toIndex(token);
  return index === undefined ? undefined : container[index];
}

/** Parses an array index (RFC 6901 §4): digits without a leading zero. */
export function toIndex(token: string): number | undefined {
  return /^(?:0|[1-9][0-9]{0,9})$/.test(token) ? Number(token) : undefined;
}

/** True for an object or an array. */
export function isContainer(value: Json | undefined): value is Container {
  return typeof value === 'object' && value !== null;
}
