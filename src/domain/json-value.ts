/** JSON values within limits: their size, copies and equality. */

import { AppError, invalidBody } from '../errors.ts';
import { jsonDepthMax, jsonValuesMax } from '../json-limits.ts';
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
  if (isJsonArray(value)) {
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
  if (Buffer.byteLength(text) > bytesMax) {
    throw new AppError('content_too_large', `A document has at most ${bytesMax} bytes.`);
  }
  return text;
}

/** The characters that may still be copied. The copies of one patch share it. */
export interface CopyBudget {
  left: number;
}

/** A value counts as at least so many characters: `{}` takes 64 bytes in memory. */
const copiedValueLength = 20;

/** A deep copy. Subtracts the length of its text from the budget, or more for many small values. */
export function copyJson(value: Json, budget: CopyBudget): Json {
  const values = countValues(value); // Too deep a value would overflow the stack.
  const text = JSON.stringify(value);
  budget.left -= Math.max(text.length, copiedValueLength * values);
  if (budget.left < 0) throw new AppError('content_too_large', 'The patch copies too much.');
  return JSON.parse(text) as Json;
}

/**
 * Equality by RFC 6902 §4.6: numbers by value, objects in any order of members. The comparison
 * stops at the first difference, and goes no deeper than `expected`.
 */
export function isEqualJson(found: Json, expected: Json): boolean {
  if (found === expected) return true;
  if (typeof found !== 'object' || typeof expected !== 'object') return false;
  if (found === null || expected === null) return false;
  if (isJsonArray(found) || isJsonArray(expected)) {
    if (!isJsonArray(found) || !isJsonArray(expected)) return false;
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

/** True for an object, not for an array or null. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `Array.isArray` as a type guard: by itself it does not narrow read-only arrays. */
export function isJsonArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
