/** How deep JSON may be nested (R10), and how much memory a value takes. */

/** `JSON.stringify` overflows the stack near 5,000 levels; stored values must stay far below. */
export const jsonDepthMax = 64;

/** An upper estimate in bytes. V8 usually takes less, but a client chooses the shapes. */
export interface JsonMeasure {
  bytes: number;
  /** Nested deeper than `jsonDepthMax`; the deeper values were not measured. */
  isTooDeep: boolean;
  /** It has members named like indices, which take more memory unless a parser created them. */
  isIndexed: boolean;
}

/** A number that is not a small integer. */
const numberBytes = 16;
/** A string, without its characters. */
const stringBytes = 24;
/** An array without its items, or an object without its members. */
const containerBytes = 64;
const itemBytes = 8;
/** If no two objects have the same names, each member adds to a hidden class of its own. */
const memberBytes = 128;
/** The hash table of members named like indices, or the holes of an array. */
const indexedBytes = 192;

/**
 * Measures a JSON value. Three times the result is at least the length of its JSON text in bytes,
 * in which a character takes up to six.
 */
export function measureJson(value: unknown): JsonMeasure {
  const measure = { bytes: 0, isTooDeep: false, isIndexed: false };
  addValue(value, measure, jsonDepthMax);
  return measure;
}

function addValue(value: unknown, measure: JsonMeasure, levels: number): void {
  if (typeof value === 'string') measure.bytes += stringBytes + 2 * value.length;
  else if (typeof value !== 'object' || value === null) measure.bytes += numberBytes;
  else if (levels === 0) measure.isTooDeep = true;
  else if (Array.isArray(value)) {
    measure.bytes += containerBytes + itemBytes * value.length;
    for (const item of value as readonly unknown[]) addValue(item, measure, levels - 1);
  } else addMembers(value as Readonly<Record<string, unknown>>, measure, levels);
}

function addMembers(
  object: Readonly<Record<string, unknown>>,
  measure: JsonMeasure,
  levels: number,
): void {
  let isIndexed = false;
  measure.bytes += containerBytes;
  for (const name in object) {
    isIndexed ||= isLikeIndex(name);
    measure.bytes += memberBytes + 2 * name.length;
    addValue(object[name], measure, levels - 1);
  }
  if (!isIndexed) return;
  measure.isIndexed = true;
  measure.bytes += indexedBytes;
}

/** Names like indices are enumerated first (ECMA-262, OrdinaryOwnPropertyKeys). */
export function hasIndices([first]: readonly string[]): boolean {
  return first !== undefined && isLikeIndex(first);
}

/** True for every name that V8 treats as an index, and for some others. */
export function isLikeIndex(name: string): boolean {
  const code = name.charCodeAt(0);
  return code >= 0x30 && code <= 0x39;
}
