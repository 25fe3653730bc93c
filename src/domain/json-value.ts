/**
 * Copying, comparing and measuring JSON values within bounds. Members have names of a client's: an
 * object that is given one such as `1023` by assignment gets room for 1,500 (V8 makes it an array).
 * `JSON.parse` alone makes objects that cost about what they hold: whatever has such names comes
 * out of it.
 */

import { AppError, invalidBody } from '../errors.ts';
import { jsonDepthMax } from '../json-depth.ts';
import type { Json, JsonObject } from '../store/model.ts';

/** What may still be copied, in about bytes of JSON text. The copies of one patch share it. */
export interface CopyBudget {
  left: number;
}

/**
 * What every value costs beside its text: about the memory that it takes. By its text alone an
 * empty array would be nearly free, and copies of many would cost twenty times as much as shown.
 * It is also more than a value's JSON text has beside the characters of its strings.
 */
const valueCost = 32;

/**
 * What the value and all values in it cost, with so much for each character of their strings.
 * Refuses what is nested deeper than a body may be (`invalid_body`, R10).
 */
function costOf(value: Json, perCharacter: number, levels = jsonDepthMax): number {
  if (typeof value === 'string') return valueCost + value.length * perCharacter;
  if (typeof value !== 'object' || value === null) return valueCost;
  if (levels === 0) throw tooDeep();
  let cost = valueCost;
  if (isJsonArray(value)) {
    for (const item of value) cost += costOf(item, perCharacter, levels - 1);
    return cost;
  }
  for (const name of Object.keys(value)) {
    cost += name.length * perCharacter + costOf(value[name] as Json, perCharacter, levels - 1);
  }
  return cost;
}

/** A copy that shares nothing with `value`. Spends what it copies. */
export function copyJson(value: Json, budget: CopyBudget): Json {
  budget.left -= costOf(value, 1);
  if (budget.left < 0) throw new AppError('content_too_large', 'The patch copies too much.');
  return JSON.parse(JSON.stringify(value)) as Json;
}

/** A copy of the object alone: its members are shared. */
export function copyMembers(object: JsonObject): Record<string, Json> {
  const names = Object.keys(object);
  // Names that are like indices come first (ECMA-262, OrdinaryOwnPropertyKeys).
  if (names[0] === undefined || !isLikeIndex(names[0])) return { ...object };
  const text = names.map((name) => `${JSON.stringify(name)}:null`).join(',');
  const copy = JSON.parse(`{${text}}`) as Record<string, Json>;
  for (const name of names) copy[name] = object[name] as Json;
  return copy;
}

/** True for every name that V8 takes for an index, and for more. */
export function isLikeIndex(name: string): boolean {
  const code = name.charCodeAt(0);
  return code >= 0x30 && code <= 0x39;
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

/** A character of a string takes so many bytes of JSON text at most, where it is escaped. */
const characterBytesMax = 6;

/**
 * Refuses a document that is too large (`content_too_large`) or nested deeper than a
 * body may be (`invalid_body`, R10): it could not be sent back, or not be read again.
 */
export function checkDocument(document: Json, bytesMax: number): void {
  // Nearly every document is so small that a rough bound tells; only the others are written out.
  if (costOf(document, characterBytesMax) <= bytesMax) return;
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
