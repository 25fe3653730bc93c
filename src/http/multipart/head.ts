/**
 * The header block of one part (Spec §2.7, RFC 7578 §4). It is read strictly, since a part that
 * is misread is a part that is lost; what is not understood is refused, never skipped. busboy would
 * take the first of two names, an empty name for none, and `%22` for three characters.
 */

import { isUtf8 } from 'node:buffer';
import { AppError } from '../../errors.ts';
import { parseMediaType } from '../media-type.ts';

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

/**
 * Header lines, without the empty line that ends them → what the part says of itself. Throws
 * `invalid_multipart`. Names are raw UTF-8, as browsers send them.
 */
export function parsePartHead(block: Buffer): PartHead {
  if (!isUtf8(block)) throw invalidMultipart('a part header is not UTF-8');
  const headers = parseHeaders(block.toString('utf8'));
  return {
    ...parseDisposition(headers.get('content-disposition')),
    ...parseType(headers.get('content-type')),
  };
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const headerPattern = new RegExp(`^(${token}):([^\\x00-\\x08\\x0a-\\x1f\\x7f]*)$`);

/** The two headers that count, by name; all others carry nothing (RFC 7578 §4.8). */
function parseHeaders(block: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  // A folded line goes on behind a blank (RFC 5322 §2.2.3).
  for (const line of block.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')) {
    const [, given, value] = headerPattern.exec(line) ?? [];
    if (given === undefined || value === undefined) {
      throw invalidMultipart('a part header cannot be read');
    }
    const name = given.toLowerCase();
    if (name !== 'content-disposition' && name !== 'content-type') continue;
    if (headers.has(name)) throw invalidMultipart(`a part has two headers ${name}`);
    headers.set(name, value.trim());
  }
  return headers;
}

/** A media type that cannot be read counts as unknown; it is no reason to refuse bytes. */
function parseType(given = 'text/plain'): Pick<PartHead, 'contentType' | 'charset'> {
  const type = parseMediaType(given);
  const contentType = type?.essence ?? 'application/octet-stream';
  return { contentType, charset: type?.parameters.get('charset') };
}

function parseDisposition(given: string | undefined): Pick<PartHead, 'name' | 'fileName'> {
  const kind = /^form-data[ \t]*(?=;|$)/i.exec(given ?? '');
  if (given === undefined || kind === null) {
    throw invalidMultipart('a part has no disposition form-data');
  }
  const parameters = parseParameters(given.slice(kind[0].length));
  const name = parameters.get('name');
  if (name === undefined) throw invalidMultipart('a part has no name');
  const extended = parameters.get('filename*');
  // RFC 6266 §4.3: the extended form wins where both are there.
  const fileName = extended === undefined ? parameters.get('filename') : decodeExtended(extended);
  return { name, fileName };
}

/**
 * One parameter, or an empty place as old clients leave it. A value is quoted with backslashes
 * before `"` and `\` (RFC 2183), quoted the browsers' way, where a backslash is a character like
 * any other, or bare.
 */
const parameterPattern = new RegExp(
  `;[ \\t]*(?:(${token})=(?:"((?:[^"\\\\]|\\\\.)*)"|"([^"]*)"|([^ \\t";]+))[ \\t]*)?(?=;|$)`,
  'gy',
);

function parseParameters(text: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  let end = 0;
  for (const [all, given, escaped, plain, bare] of text.matchAll(parameterPattern)) {
    end += all.length;
    if (given === undefined) continue;
    const name = given.toLowerCase();
    if (parameters.has(name)) throw invalidMultipart('a disposition has a parameter twice');
    // A backslash before any other character is the separator of a Windows path.
    const quoted = escaped?.replaceAll(/\\(["\\])/g, '$1') ?? plain;
    parameters.set(name, quoted === undefined ? (bare ?? '') : decodeBrowser(quoted));
  }
  if (end !== text.length) throw invalidMultipart('the disposition of a part cannot be read');
  return parameters;
}

/** The three characters that browsers escape (HTML, "multipart/form-data encoding algorithm"). */
function decodeBrowser(value: string): string {
  return value.replaceAll(/%(?:22|0d|0a)/gi, (code) => decodeURIComponent(code));
}

const extendedPattern =
  /^(utf-8|iso-8859-1)'[A-Za-z0-9-]*'((?:%[0-9A-Fa-f]{2}|[!#$&+.^_`|~0-9A-Za-z-])*)$/i;

/** RFC 8187 §3.2: charset, language and percent-encoded bytes. */
function decodeExtended(value: string): string {
  const [, charset, encoded] = extendedPattern.exec(value) ?? [];
  if (charset === undefined || encoded === undefined) throw badFileName();
  if (charset.toLowerCase() !== 'utf-8') {
    const toCharacter = (_all: string, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16));
    return encoded.replaceAll(/%(..)/g, toCharacter);
  }
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw badFileName();
  }
}

function badFileName(): AppError {
  return invalidMultipart('an extended file name cannot be read');
}
