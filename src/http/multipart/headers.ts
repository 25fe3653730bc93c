/**
 * Parses the headers of a multipart body: its media type, and the header block of each part (Spec
 * §2.7, RFC 7578 §4). They are read strictly, because a part that is misread is lost: busboy would
 * accept duplicate names, an empty name as none, and `%22` unchanged.
 */

import { isUtf8 } from 'node:buffer';
import { AppError } from '../../errors.ts';
import { parseMediaType, token } from '../media-type.ts';

/** RFC 2046 §5.1.1: 1 to 70 characters of a short list; the last one is not a space. */
const boundaryPattern = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;

/** Throws `unsupported_media_type` and `invalid_multipart`. */
export function findBoundary(contentType: string | undefined): string {
  const type = contentType === undefined ? undefined : parseMediaType(contentType);
  if (type?.essence !== 'multipart/form-data') {
    throw new AppError('unsupported_media_type', 'The body must be multipart/form-data.', {
      headers: ['Accept', 'multipart/form-data'],
    });
  }
  const boundary = type.parameters.get('boundary');
  if (boundary === undefined || !boundaryPattern.test(boundary)) {
    throw invalidMultipart('its media type has no valid boundary');
  }
  return boundary;
}

export interface PartHead {
  /** Required for every part (RFC 7578 §4.2); may be empty. */
  readonly name: string;
  /** As the client sent it, never used as a path. Undefined if the part has none. */
  readonly fileName: string | undefined;
  /** `type/subtype` in lower case; default `text/plain` (RFC 7578 §4.4). */
  readonly contentType: string;
  /** As sent; undefined if the media type has none. */
  readonly charset: string | undefined;
}

export function invalidMultipart(fault: string): AppError {
  return new AppError('invalid_multipart', `The multipart body is not valid: ${fault}.`);
}

export function tooLarge(what: string, bytesMax: number): AppError {
  return new AppError('content_too_large', `${what} is larger than ${bytesMax} bytes.`);
}

/**
 * Parses header lines, without the empty line after them; names are raw UTF-8, as browsers send
 * them. Throws `invalid_multipart`.
 */
export function parsePartHead(block: Buffer): PartHead {
  if (!isUtf8(block)) throw invalidMultipart('a part header is not UTF-8');
  const headers = parseHeaders(block.toString('utf8'));
  return {
    ...parseDisposition(headers.get('content-disposition')),
    ...parseType(headers.get('content-type')),
  };
}

const headerPattern = new RegExp(`^(${token}):([^\\x00-\\x08\\x0a-\\x1f\\x7f]*)$`);

/** The two headers that are used, by name; others are ignored (RFC 7578 §4.8). */
function parseHeaders(block: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  // A folded line continues after white space (RFC 5322 §2.2.3).
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

/** A malformed media type counts as unknown: the file is still accepted. */
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
  // RFC 6266 §4.3: the extended form takes precedence.
  const fileName = extended === undefined ? parameters.get('filename') : decodeExtended(extended);
  return { name, fileName };
}

/**
 * One parameter, or an empty one as old clients send. A value is quoted with backslashes before `"`
 * and `\` (RFC 2183), quoted as browsers do, where a backslash has no special meaning, or not
 * quoted.
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
    // Any other backslash separates the folders of a Windows path.
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
