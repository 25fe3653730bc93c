/**
 * The one reader of JSON (R10). What it returns was valid UTF-8 and JSON, at most 64 levels deep,
 * without a member named `__proto__`, without lone surrogates (they are no Unicode text), and
 * without a number that a double cannot hold: nothing is rounded behind the client's back.
 */

import { isUtf8 } from 'node:buffer';
import { AppError } from '../errors.ts';
import { jsonDepthMax } from '../json-measure.ts';
import { isJsonType } from './media-type.ts';
import type { HttpRequest } from './message.ts';

/**
 * The JSON body of a request. Another media type: 415 with `accept` in the `Accept` header.
 * More than `bytesMax`: 413. Not JSON as above: 400.
 */
export function readJson(request: HttpRequest, bytesMax: number): Promise<unknown> {
  if (!isJsonType(request.header('content-type'))) {
    throw new AppError('unsupported_media_type', 'The body must be application/json in UTF-8.', {
      accept: 'application/json',
    });
  }
  return request.readBody(bytesMax).then(parseJson);
}

/** JSON bytes → value. Throws `invalid_json`. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw invalid('it is not valid UTF-8');
  return parseJsonText(bytes.toString('utf8'));
}

/** JSON text → value. Throws `invalid_json`. A byte order mark in front is ignored. */
export function parseJsonText(text: string): unknown {
  const json = text.charCodeAt(0) === 0xfe_ff ? text.slice(1) : text;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw invalid('it is not JSON');
  }
  checkTokens(json);
  // Both faults need an escape or the very name in the text: the walk is for these texts only.
  if (json.includes('\\u') || json.includes('__proto__')) checkStrings(value);
  return value;
}

/** Depth and numbers, on text that is known to be JSON. */
function checkTokens(json: string): void {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === 0x22) {
      at = endOfString(json, at);
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth > jsonDepthMax) throw invalid(`it is nested deeper than ${jsonDepthMax} levels`);
    } else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
    } else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      at = checkNumber(json, at);
    }
  }
}

/** The index of the closing quote: one with an even number of backslashes in front. */
function endOfString(json: string, start: number): number {
  for (let quote = json.indexOf('"', start + 1); ; quote = json.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (json.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
  }
}

/**
 * Two decimals of so many digits are never the same double, as long as they are neither tiny nor
 * huge: such a number is always written as it was read (the `DBL_DIG` of C, `float.h`).
 */
const exactDigitsMax = 15;
/** Doubles below hold fewer digits (`DBL_MIN`). */
const exactMin = 2.2250738585072014e-308;
/** The letter and two more: an exponent of that length makes nothing tiny or huge. */
const exponentLengthMax = 3;

/** The index of the number's last character. */
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
  // The sign and the point count as digits: the rule need not be sharp.
  const digits = (exponentAt === -1 ? end : exponentAt) - start;
  const isPlain = exponentAt === -1 || end - exponentAt <= exponentLengthMax;
  if (isPlain && digits <= exactDigitsMax) return end - 1;
  if (!isKept(json.slice(start, end), digits)) {
    throw invalid('it holds a number that cannot be kept without rounding');
  }
  return end - 1;
}

/** Whether a double, when it is written, has exactly the decimal value of `token`. */
function isKept(token: string, digits: number): boolean {
  const value = Number(token);
  const magnitude = Math.abs(value);
  if (digits <= exactDigitsMax && magnitude >= exactMin && magnitude < Infinity) return true;
  const written = String(value);
  if (written === token) return true;
  return Number.isFinite(value) && toDecimal(token) === toDecimal(written);
}

const numberForm = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Sign, digits without zeros at either end, and exponent: equal for equal decimal values. */
function toDecimal(token: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = numberForm.exec(token) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return '0';
  // Not by a pattern: one for zeros at the end looks at each run of zeros anew.
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 0x30) end -= 1;
  const moved = digits.length - end - fraction.length;
  return `${sign}${digits.slice(0, end)}e${Number(exponent) + moved}`;
}

/** At most `jsonDepthMax` levels: the recursion is bounded. */
function checkStrings(value: unknown): void {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw invalid('it holds a lone surrogate');
  } else if (Array.isArray(value)) {
    for (const item of value) checkStrings(item);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, member] of Object.entries(value)) {
      if (key === '__proto__') throw invalid('it holds a member named __proto__');
      checkStrings(key);
      checkStrings(member);
    }
  }
}

function invalid(why: string): AppError {
  return new AppError('invalid_json', `The body cannot be read as JSON: ${why}.`);
}

/** A JSON object, not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
