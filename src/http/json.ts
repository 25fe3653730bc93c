/**
 * Parses JSON (R10). A parsed value was valid UTF-8 and JSON, has at most 64 levels and 50,000
 * values, no member named `__proto__`, no lone surrogates (they are not Unicode text), and no
 * number that a double cannot hold: nothing is rounded silently.
 */

import { isUtf8 } from 'node:buffer';
import { AppError } from '../errors.ts';
import { endOfString, parseText } from './json-escaped-names.ts';
import { hasUtf8Charset, parseMediaType } from './media-type.ts';
import type { HttpRequest } from './message.ts';

/** Levels (R10), of a body and of what a patch makes. `JSON.stringify` overflows near 5,000. */
export const jsonDepthMax = 64;

/** Values and names of members (R39): `{},` is 3 bytes of text, and 64 in memory. */
export const jsonValuesMax = 50_000;

/**
 * Reads the JSON body of a request, and returns what `decode` makes of it. The body itself is
 * dropped at once: values can take 20 times the memory of their text. 415 for another media type,
 * with `accept` for the `Accept` header; 413 beyond `bytesMax` or too many values; 400 if it is not
 * JSON as defined above.
 */
export async function readJson<T>(
  request: HttpRequest,
  bytesMax: number,
  decode: (body: unknown) => T,
): Promise<T> {
  if (!isJsonType(request.header('content-type'))) {
    throw new AppError('unsupported_media_type', 'The body must be application/json in UTF-8.', {
      headers: ['Accept', 'application/json'],
    });
  }
  return request.decodeBody(bytesMax, (bytes) => decode(parseJson(bytes)));
}

/** True for JSON in UTF-8 (R10): `application/json` or `+json`, charset absent or UTF-8. */
export function isJsonType(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true;
  const type = parseMediaType(contentType ?? '');
  if (type === undefined || !hasUtf8Charset(type)) return false;
  return type.essence === 'application/json' || type.essence.endsWith('+json');
}

interface JsonLimits {
  readonly depthMax: number;
  readonly valuesMax: number;
  /** Texts may have lone surrogates. */
  readonly hasAnyText?: true;
}

const bodyLimits: JsonLimits = { depthMax: jsonDepthMax, valuesMax: jsonValuesMax };

/**
 * Parses JSON: a text, or bytes in UTF-8. Ignores a byte order mark at the start. Throws
 * `invalid_json`, or `content_too_large` for too many values.
 */
export function parseJson(source: Buffer | string, limits = bodyLimits): unknown {
  if (typeof source !== 'string' && !isUtf8(source)) throw invalid('it is not valid UTF-8');
  const text = source.toString();
  const json = text.charCodeAt(0) === 0xfe_ff ? text.slice(1) : text;
  checkTokens(json, limits);
  let value: unknown;
  try {
    value = parseText(json);
  } catch {
    throw invalid(json === '' ? 'it is empty' : 'it is not JSON');
  }
  // Both faults need an escape or this name in the text, so other texts are not walked.
  if (json.includes('\\u') || json.includes('__proto__')) checkStrings(value, limits);
  return value;
}

/** Checks depth, numbers and the count of values, before they take memory. */
function checkTokens(json: string, { depthMax, valuesMax }: JsonLimits): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === 0x22) {
      values += 1;
      // Most strings have no backslash before their first quote.
      const quote = json.indexOf('"', at + 1);
      const isShort = quote !== -1 && json.charCodeAt(quote - 1) !== 0x5c;
      at = isShort ? quote : endOfString(json, at);
    } else if (code === 0x7b || code === 0x5b) {
      values += 1;
      depth += 1;
      if (depth > depthMax) throw invalid(`it is nested deeper than ${depthMax} levels`);
    } else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
    } else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      values += 1;
      at = checkNumber(json, at);
    } else if (code === 0x66 || code === 0x6e || code === 0x74) {
      // The first letter of `false`, `null` and `true`, and of nothing else in them.
      values += 1;
    }
    if (values > valuesMax) throw tooManyValues(valuesMax);
  }
}

/**
 * Different decimals of this many digits are different doubles, and are printed as they were read
 * (`DBL_DIG` in `float.h`), unless they are tiny or huge.
 */
const exactDigitsMax = 15;
/** So many digits name a double (`DBL_DECIMAL_DIG`). */
const namingDigitsMax = 17;
/** Doubles below this have fewer digits (`DBL_MIN`). */
const exactMin = 2.2250738585072014e-308;
/** The length of `e` and two characters: such an exponent cannot make a number tiny or huge. */
const exponentLengthMax = 3;

/** Checks the number at `start`. Returns the index of its last character. */
function checkNumber(json: string, start: number): number {
  let end = start + 1;
  let exponentAt = -1;
  for (; end < json.length; end += 1) {
    const code = json.charCodeAt(end);
    if (code >= 0x30 && code <= 0x39) continue;
    if (code === 0x65 || code === 0x45) exponentAt = end;
    // '.', '+', '-'
    else if (code !== 0x2e && code !== 0x2b && code !== 0x2d) break;
  }
  // The sign and the point are counted as digits, which only makes the fast path rarer.
  const digits = (exponentAt === -1 ? end : exponentAt) - start;
  const isPlain = exponentAt === -1 || end - exponentAt <= exponentLengthMax;
  if (isPlain && digits <= exactDigitsMax) return end - 1;
  if (!isKept(json.slice(start, end), digits)) {
    throw invalid('it holds a number that cannot be kept without rounding');
  }
  return end - 1;
}

/**
 * True if some double is meant by `token` exactly (R10): it is the shortest form of the double, or
 * the double written with as many digits, of which 17 name any double (`%.17g` in C).
 */
function isKept(token: string, digits: number): boolean {
  const value = Number(token);
  const magnitude = Math.abs(value);
  if (digits <= exactDigitsMax && magnitude >= exactMin && magnitude < Infinity) return true;
  const written = String(value);
  if (written === token) return true;
  if (!Number.isFinite(value)) return false;
  const decimal = toDecimal(token);
  if (decimal === toDecimal(written)) return true;
  const count = decimal.replace('-', '').indexOf('e');
  return count <= namingDigitsMax && decimal === toDecimal(value.toPrecision(count));
}

const numberForm = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Sign, digits without zeros at either end, and exponent: the same text for the same value. */
function toDecimal(token: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = numberForm.exec(token) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return '0';
  // Not a regular expression: one for trailing zeros takes quadratic time.
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 0x30) end -= 1;
  const moved = digits.length - end - fraction.length;
  return `${sign}${digits.slice(0, end)}e${Number(exponent) + moved}`;
}

/** The recursion is at most `depthMax` levels deep. */
function checkStrings(value: unknown, limits: JsonLimits): void {
  if (typeof value === 'string') {
    if (!limits.hasAnyText && !value.isWellFormed()) throw invalid('it holds a lone surrogate');
  } else if (Array.isArray(value)) {
    for (const item of value) checkStrings(item, limits);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, member] of Object.entries(value)) {
      if (key === '__proto__') throw invalid('it holds a member named __proto__');
      checkStrings(key, limits);
      checkStrings(member, limits);
    }
  }
}

function tooManyValues(valuesMax: number): AppError {
  const message = `The JSON has more than ${valuesMax} values and names of members.`;
  return new AppError('content_too_large', message);
}

function invalid(why: string): AppError {
  return new AppError('invalid_json', `This cannot be read as JSON: ${why}.`);
}

/** True for a JSON object, not for an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
