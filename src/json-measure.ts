/** How deep JSON may be nested (R10), and how much memory a value takes. */

/** `JSON.stringify` fails near 5,000 levels: what is stored must stay far below. */
export const jsonDepthMax = 64;

/** At least what V8 takes: usually it takes less, but a client chooses the shapes. In bytes. */
export interface JsonMeasure {
  bytes: number;
  /** Nested deeper than `jsonDepthMax`: what lies below was not measured. */
  isTooDeep: boolean;
  /** It has members that are named like indices: made otherwise than by a parser they take more. */
  isIndexed: boolean;
}

/** A number that is no small integer. */
const numberBytes = 16;
/** A string without its characters. */
const stringBytes = 24;
/** An array without its items, an object without its members. */
const containerBytes = 64;
const itemBytes = 8;
/** Where no two objects have the same names, each member brings a description of its own. */
const memberBytes = 128;
/** The table of members that are named like indices, or the gaps in an array of them. */
const indexedBytes = 192;

/**
 * Measures a JSON value. Three times its bytes are never less than the bytes of its JSON text, in
 * which a character takes six at most.
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
  const names = Object.keys(object);
  measure.bytes += containerBytes + memberBytes * names.length;
  if (hasIndices(names)) {
    measure.bytes += indexedBytes;
    measure.isIndexed = true;
  }
  for (const name of names) {
    measure.bytes += 2 * name.length;
    addValue(object[name], measure, levels - 1);
  }
}

/** Names that are like indices come first (ECMA-262, OrdinaryOwnPropertyKeys). */
export function hasIndices([first]: readonly string[]): boolean {
  return first !== undefined && isLikeIndex(first);
}

/** True for every name that V8 takes for an index, and for more. */
export function isLikeIndex(name: string): boolean {
  const code = name.charCodeAt(0);
  return code >= 0x30 && code <= 0x39;
}
