/**
 * The header block of one part (Spec §2.7, RFC 7578 §4). It is read strictly, since a part that
 * is misread is a part that is lost; what is not understood is refused, never skipped.
 */

import { isUtf8 } from 'node:buffer';
import { AppError } from '../errors.ts';
import { parseMediaType } from './media-type.ts';

export interface PartHead {
  /** Every part has one (RFC 7578 §4.2); it may be empty. */
  readonly name: string;
  /** As the client sent it: data, never a path. Undefined where the part has none. */
  readonly fileName: string | undefined;
  /** `type/subtype` in lower case; `text/plain` where none was sent (RFC 7578 §4.4). */
  readonly contentType: string;
  /** As sent; undefined where the media type names none. */
  readonly charset: string | undefined;
}

export function invalidMultipart(fault: string): AppError {
  return new AppError('invalid_multipart', `The multipart body is not valid: ${fault}.`);
}

// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const controlCharacter = /[\x00-\x08\x0a-\x1f\x7f]/;
const tokenPattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * Header lines, without the empty line that ends them → what the part says of itself. Throws
 * `invalid_multipart`. Names are raw UTF-8, as browsers send them.
 */
export function parsePartHead(block: Buffer): PartHead {
  if (!isUtf8(block)) throw invalidMultipart('a part header is not UTF-8');
  let disposition: string | undefined;
  let type: string | undefined;
  for (const line of toLines(block.toString('utf8'))) {
    const colon = line.indexOf(':');
    if (colon < 1 || !tokenPattern.test(line.slice(0, colon))) {
      throw invalidMultipart('a part header line has no name');
    }
    const value = line.slice(colon + 1).trim();
    switch (line.slice(0, colon).toLowerCase()) {
      case 'content-disposition':
        if (disposition !== undefined) throw invalidMultipart('a part has two dispositions');
        disposition = value;
        break;
      case 'content-type':
        if (type !== undefined) throw invalidMultipart('a part has two media types');
        type = value;
        break;
      // All others carry nothing (RFC 7578 §4.8).
    }
  }
  return { ...parseDisposition(disposition), ...toType(type) };
}

/** Lines of a block, folded ones joined (RFC 5322 §2.2.3). */
function toLines(block: string): readonly string[] {
  if (block === '') return [];
  const lines = block.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n');
  if (lines.some((line) => controlCharacter.test(line))) {
    throw invalidMultipart('a part header holds a control character');
  }
  return lines;
}

/** A media type that cannot be read is a type that nobody knows, and no reason to refuse bytes. */
function toType(given: string | undefined): Pick<PartHead, 'contentType' | 'charset'> {
  if (given === undefined) return { contentType: 'text/plain', charset: undefined };
  const type = parseMediaType(given);
  if (type === undefined) return { contentType: 'application/octet-stream', charset: undefined };
  return { contentType: type.essence, charset: type.parameters.get('charset') };
}

const formData = /^form-data[ \t]*(?=;|$)/i;
/** An empty place: old clients end the line with a `;`. */
const noParameter = /;[ \t]*(?=;|$)/y;
const parameterName = /;[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=/y;
/** Quoted with backslashes before `"` and `\`, as RFC 2183 has it. */
const escapedValue = /"((?:[^"\\]|\\.)*)"[ \t]*(?=;|$)/y;
/** Quoted the browsers' way, where a backslash is a character like any other. */
const plainValue = /"([^"]*)"[ \t]*(?=;|$)/y;
const bareValue = /([^ \t";]+)[ \t]*(?=;|$)/y;

function parseDisposition(given: string | undefined): Pick<PartHead, 'name' | 'fileName'> {
  if (given === undefined) throw invalidMultipart('a part has no disposition');
  const kind = formData.exec(given);
  if (kind === null) throw invalidMultipart('the disposition of a part is not form-data');
  const parameters = parseParameters(given, kind[0].length);
  const name = parameters.get('name');
  if (name === undefined) throw invalidMultipart('a part has no name');
  const extended = parameters.get('filename*');
  // RFC 6266 §4.3: the extended form wins where both are there.
  const fileName = extended === undefined ? parameters.get('filename') : decodeExtended(extended);
  return { name, fileName };
}

function parseParameters(text: string, start: number): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  let at = start;
  while (at < text.length) {
    const empty = matchAt(noParameter, text, at);
    if (empty !== undefined) {
      at += empty[0].length;
      continue;
    }
    const found = matchAt(parameterName, text, at);
    const name = found?.[1]?.toLowerCase();
    if (found === undefined || name === undefined) throw badDisposition();
    at += found[0].length;
    const value = parseValue(text, at);
    if (parameters.has(name)) throw invalidMultipart('a disposition has a parameter twice');
    parameters.set(name, value.text);
    at = value.end;
  }
  return parameters;
}

function parseValue(text: string, at: number): { readonly text: string; readonly end: number } {
  const escaped = matchAt(escapedValue, text, at);
  const found = escaped ?? matchAt(plainValue, text, at) ?? matchAt(bareValue, text, at);
  const inner = found?.[1];
  if (found === undefined || inner === undefined) throw badDisposition();
  const end = at + found[0].length;
  if (!found[0].startsWith('"')) return { text: inner, end };
  // A backslash before any other character is the separator of a Windows path.
  const unescaped = escaped === undefined ? inner : inner.replaceAll(/\\(["\\])/g, '$1');
  // The three characters that browsers escape (HTML, "multipart/form-data encoding algorithm").
  const value = unescaped.replaceAll(/%(?:22|0d|0a)/gi, (code) => decodeURIComponent(code));
  return { text: value, end };
}

/** RFC 8187 §3.2: charset, language and percent-encoded bytes. */
function decodeExtended(value: string): string {
  const [, charset = '', encoded = ''] =
    /^([!#$%&+^_`{}~0-9A-Za-z-]+)'[A-Za-z0-9-]*'((?:%[0-9A-Fa-f]{2}|[!#$&+.^_`|~0-9A-Za-z-])*)$/.exec(
      value,
    ) ?? [];
  switch (charset.toLowerCase()) {
    case 'utf-8':
      return decodeUtf8(encoded);
    case 'iso-8859-1':
      return encoded.replaceAll(/%(..)/g, (_all, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      );
    default:
      throw invalidMultipart('a file name is in a charset that is not known');
  }
}

function decodeUtf8(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw invalidMultipart('a file name is not UTF-8');
  }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

function badDisposition(): AppError {
  return invalidMultipart('the disposition of a part cannot be read');
}
