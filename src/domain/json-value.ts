/** JSON values: size, copies and equality within limits, and pointers into them (RFC 6901). */

import { AppError, invalidBody } from '../errors.ts';
import { jsonDepthMax, jsonValuesMax } from '../http/json.ts';
import { parseText } from '../http/json-escaped-names.ts';
import type { Json, JsonObject } from '../store/model.ts';

/**
 * Returns the number of values and names of members. Throws `invalid_body` for a value nested
 * deeper than a body may be (R10).
 */
export function countValues(value: Json, levels = jsonDepthMax): number {
  if (typeof value !== 'object' || value === null) return 1;
  if (levels === 0) {
    const message = `is nested deeper than ${jsonDepthMax} levels`;
    throw invalidBody([{ pointer: '', message }]);
  }
  let count = 1;
  if (Array.isArray(value)) {
    for (const item of value) count += countValues(item, levels - 1);
  } else {
    for (const name in value) count += 1 + countValues(value[name] as Json, levels - 1);
  }
  return count;
}

/**
 * Returns the JSON text of a document. Throws `invalid_body` or `content_too_large` for one that
 * could not be sent in a body of `bytesMax`.
 */
export function toDocumentText(document: Json, bytesMax: number): string {
  if (countValues(document) > jsonValuesMax) {
    const message = `A document has at most ${jsonValuesMax} values and names of members.`;
    throw new AppError('content_too_large', message);
  }
  const text = JSON.stringify(document);
  // A character takes at most three bytes.
  if (3 * text.length > bytesMax && Buffer.byteLength(text) > bytesMax) {
    throw new AppError('content_too_large', `A document has at most ${bytesMax} bytes.`);
  }
  return text;
}

/** A value counts as at least so many characters: `{}` takes 64 bytes in memory. */
const copiedValueLength = 20;

/**
 * A deep copy. Subtracts the length of its text, or more for many small values, from the characters
 * that are `left` for all copies of one patch.
 */
export function copyJson(value: Json, budget = { left: Infinity }): Json {
  const values = countValues(value); // Too deep a value would overflow the stack.
  const text = JSON.stringify(value);
  budget.left -= Math.max(text.length, copiedValueLength * values);
  if (budget.left < 0) throw new AppError('content_too_large', 'The patch copies too much.');
  return parseText(text) as Json;
}

/**
 * Equality by RFC 6902 §4.6: numbers by value, objects in any order of members. The comparison
 * stops at the first difference, and goes no deeper than `expected`. `isDeepStrictEqual` of Node
 * takes 0.4 s for 12,000 objects.
 */
export function isEqualJson(found: Json, expected: Json): boolean {
  if (found === expected) return true;
  if (typeof found !== 'object' || typeof expected !== 'object') return false;
  if (found === null || expected === null) return false;
  if (Array.isArray(found) || Array.isArray(expected)) {
    if (!Array.isArray(found) || !Array.isArray(expected)) return false;
    if (found.length !== expected.length) return false;
    return found.every((item, index) => isEqualJson(item, expected[index] as Json));
  }
  const names = Object.keys(expected);
  if (names.length !== Object.keys(found).length) return false;
  return names.every(
    (name) =>
      Object.hasOwn(found, name) && isEqualJson(found[name] as Json, expected[name] as Json),
  );
}

export interface JsonPointer {
  readonly text: string;
  /** The unescaped reference tokens; empty for the whole document. */
  readonly tokens: readonly string[];
}

type Container = Json[] | JsonObject;

/** Parses a pointer (RFC 6901 §3); undefined if it is malformed. */
export function parsePointer(text: string): JsonPointer | undefined {
  if (text !== '' && !text.startsWith('/')) return undefined;
  const tokens: string[] = [];
  // `split` takes three times as long for a text that is new.
  for (let at = 1, end = 0; at <= text.length; at = end + 1) {
    end = text.indexOf('/', at);
    if (end === -1) end = text.length;
    tokens.push(text.slice(at, end));
  }
  // Few pointers have escapes, and checking each token costs as much as the rest of the patch.
  if (!text.includes('~')) return { text, tokens };
  if (/~(?![01])/.test(text)) return undefined;
  // The order matters: `~01` stands for `~1` (RFC 6901 §4).
  const unescape = (token: string): string => token.replaceAll('~1', '/').replaceAll('~0', '~');
  return { text, tokens: tokens.map(unescape) };
}

/** The value that the first `count` tokens of a pointer lead to; undefined where there is none. */
export function findValue(document: Json, tokens: readonly string[], count = tokens.length) {
  let value: Json | undefined = document;
  for (let at = 0; at < count; at += 1) {
    if (!isContainer(value)) return undefined;
    value = findChild(value, tokens[at] as string); // within its length
  }
  return value;
}

/** The value that one token leads to, or undefined. */
export function findChild(container: Container, token: string): Json | undefined {
  if (!Array.isArray(container))
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
