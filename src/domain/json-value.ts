/**
 * Copying, comparing and measuring JSON values within bounds. Members have names of a client's: an
 * object that is given one such as `1023` by assignment gets room for 1,500 (V8 makes it an array).
 * `JSON.parse` alone makes objects that cost about what they hold: whatever has such names comes
 * out of it.
 */

import { AppError, invalidBody } from '../errors.ts';
import { hasIndices, jsonDepthMax, measureJson } from '../json-measure.ts';
import type { Json, JsonObject } from '../store/model.ts';

/** What may still be copied, in bytes of memory. The copies of one patch share it. */
export interface CopyBudget {
  left: number;
}

/** In memory. Refuses what is nested deeper than a body may be (`invalid_body`, R10). */
function bytesOf(value: Json): number {
  const { bytes, isTooDeep } = measureJson(value);
  if (isTooDeep) throw tooDeep();
  return bytes;
}

/** A copy that shares nothing with `value`. Spends what it copies. */
export function copyJson(value: Json, budget: CopyBudget): Json {
  budget.left -= bytesOf(value);
  if (budget.left < 0) throw new AppError('content_too_large', 'The patch copies too much.');
  return JSON.parse(JSON.stringify(value)) as Json;
}

/** A copy of the object alone: its members are shared. */
export function copyMembers(object: JsonObject): Record<string, Json> {
  const names = Object.keys(object);
  if (!hasIndices(names)) return { ...object };
  const text = names.map((name) => `${JSON.stringify(name)}:null`).join(',');
  const copy = JSON.parse(`{${text}}`) as Record<string, Json>;
  for (const name of names) copy[name] = object[name] as Json;
  return copy;
}

/**
 * Equality as RFC 6902 §4.6 has it: numbers by value, objects whatever the order of members. Goes
 * no deeper and lists no more than `expected` holds, or than ends the comparison.
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
 * Refuses a document that is too large (`content_too_large`) or nested deeper than a
 * body may be (`invalid_body`, R10): it could not be sent back, or not be read again.
 */
export function checkDocument(document: Json, bytesMax: number): void {
  // Nearly every document is so small that a rough bound tells; only the others are written out.
  if (3 * bytesOf(document) <= bytesMax) return;
  if (Buffer.byteLength(JSON.stringify(document)) > bytesMax) {
    throw new AppError('content_too_large', `A document has at most ${bytesMax} bytes.`);
  }
}

/** True for an object, as opposed to an array, null and the rest. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `Array.isArray` for JSON: it does not narrow read-only arrays by itself. */
export function isJsonArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

/** For what is nested deeper than a body may be (R10). */
export function tooDeep(): AppError {
  return invalidBody([{ pointer: '', message: `is nested deeper than ${jsonDepthMax} levels` }]);
}
