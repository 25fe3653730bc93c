/**
 * Copying, comparing and measuring JSON values within limits. A client chooses the names of
 * members. If a name such as `1023` is assigned to an object, V8 allocates it as an array of 1,500
 * elements. `JSON.parse` does not, so objects with such names are always created by it.
 */

import { AppError, invalidBody } from '../errors.ts';
import { hasIndices, jsonDepthMax, measureJson } from '../json-measure.ts';
import type { Json, JsonObject } from '../store/model.ts';

/** The bytes of memory that may still be copied. The copies of one patch share it. */
export interface CopyBudget {
  left: number;
}

/** Bytes in memory. Throws `invalid_body` for a value nested deeper than a body may be (R10). */
function bytesOf(value: Json): number {
  const { bytes, isTooDeep } = measureJson(value);
  if (isTooDeep) throw tooDeep();
  return bytes;
}

/** A deep copy. Subtracts its size from the budget. */
export function copyJson(value: Json, budget: CopyBudget): Json {
  budget.left -= bytesOf(value);
  if (budget.left < 0) throw new AppError('content_too_large', 'The patch copies too much.');
  return JSON.parse(JSON.stringify(value)) as Json;
}

/** A shallow copy. */
export function copyMembers(object: JsonObject): Record<string, Json> {
  const names = Object.keys(object);
  if (!hasIndices(names)) return { ...object };
  const text = names.map((name) => `${JSON.stringify(name)}:null`).join(',');
  const copy = JSON.parse(`{${text}}`) as Record<string, Json>;
  for (const name of names) copy[name] = object[name] as Json;
  return copy;
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

/**
 * Refuses a document that is too large (`content_too_large`) or nested deeper than a body may be
 * (`invalid_body`, R10): it could not be sent, or not be read again.
 */
export function checkDocument(document: Json, bytesMax: number): void {
  // A rough bound is enough for nearly every document; only large ones are serialised.
  if (3 * bytesOf(document) <= bytesMax) return;
  if (Buffer.byteLength(JSON.stringify(document)) > bytesMax) {
    throw new AppError('content_too_large', `A document has at most ${bytesMax} bytes.`);
  }
}

/** True for an object, not for an array or null. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `Array.isArray` as a type guard: by itself it does not narrow read-only arrays. */
export function isJsonArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

/** For a value nested deeper than a body may be (R10). */
export function tooDeep(): AppError {
  return invalidBody([{ pointer: '', message: `is nested deeper than ${jsonDepthMax} levels` }]);
}
