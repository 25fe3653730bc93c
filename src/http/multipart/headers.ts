/**
 * Parses the headers of a multipart body: its media type, and the header block of each part (Spec
 * §2.7, RFC 7578 §4). busboy has judged the lines; what they say is read here, because busboy drops
 * a part whose disposition it does not understand, and knows neither `name*` nor encoded words.
 */

import { isUtf8 } from 'node:buffer';
import { AppError, invalidBody } from '../../errors.ts';
import { parseMediaType, token } from '../media-type.ts';

/** RFC 2046 §5.1.1: 1 to 70 characters of a short list; the last one is not a space. */
const boundaryPattern = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;

/** Throws `unsupported_media_type` and `invalid_multipart`. */
export function findBoundary(contentType: string | undefined): string {
  const type = parseMediaType(contentType ?? '');
  if (type?.essence !== 'multipart/form-data') {
    throw new AppError('unsupported_media_type', 'The body must be multipart/form-data.', {
      headers: ['Accept', 'multipart/form-data'],
    });
  }
  const boundary = type.parameters.get('boundary') ?? '';
  if (boundaryPattern.test(boundary)) return boundary;
  throw invalidMultipart('its media type has no valid boundary');
}

export interface PartHead {
  /** Required for every part (RFC 7578 §4.2); may be empty. */
  readonly name: string;
  /** In NFC; never used as a path. Undefined if the part has none. */
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

/** The headers that change what a part means; others are ignored (RFC 7578 §4.8). */
const headerPattern =
  /(?:^|\r\n)(content-(?:disposition|type|encoding|transfer-encoding)):([^\r\n]*)/gi;

/**
 * Parses header lines, without the empty line after them. Throws `invalid_multipart`, and
 * `invalid_body` for a part that is itself multipart: its parts would be lost (R18).
 */
export function parsePartHead(block: Buffer): PartHead {
  if (!isUtf8(block)) throw invalidMultipart('a part header is not UTF-8');
  // A folded line continues after white space (RFC 5322 §2.2.3).
  const lines = block
    .toString()
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .matchAll(headerPattern);
  const headers = toUnique([...lines].map(([, name = '', value = '']) => [name, value.trim()]));
  const disposition = headers.get('content-disposition') ?? '';
  const [kind] = /^form-data[ \t]*(?=;|$)/i.exec(disposition) ?? [];
  if (kind === undefined) throw invalidMultipart('a part has no disposition form-data');
  const parameters = parseParameters(disposition.slice(kind.length));
  checkCoding(headers);
  const name = findText(parameters, 'name');
  if (name === undefined) throw invalidMultipart('a part has no name');
  const fileName = findText(parameters, 'filename')?.normalize('NFC');
  // A malformed media type counts as unknown: the file is still accepted.
  const type = parseMediaType(headers.get('content-type') ?? 'text/plain');
  const contentType = type?.essence ?? 'application/octet-stream';
  if (contentType.startsWith('multipart/') && (!fileName || type?.parameters.has('boundary'))) {
    throw invalidBody([
      {
        pointer: '',
        message: 'may not hold a part that is itself multipart: send each file as a part',
      },
    ]);
  }
  return { name, fileName, contentType, charset: type?.parameters.get('charset') };
}

function toUnique(
  entries: readonly (readonly [name: string, value: string])[],
): ReadonlyMap<string, string> {
  const unique = new Map(entries.map(([name, value]) => [name.toLowerCase(), value]));
  // Twice the same has one meaning.
  if (entries.every(([name, value]) => unique.get(name.toLowerCase()) === value)) return unique;
  throw invalidMultipart('a part has a header or a parameter twice');
}

/** What a coding made of the content would be stored as the content (RFC 7578 §4.7). */
function checkCoding(headers: ReadonlyMap<string, string>): void {
  for (const name of ['content-encoding', 'content-transfer-encoding']) {
    if (/^(?:7bit|8bit|binary|identity)?$/i.test(headers.get(name) ?? '')) continue;
    throw invalidBody([{ pointer: '', message: `may not hold a part with a ${name}` }]);
  }
}

/**
 * One parameter, or an empty one as old clients send. A value is quoted with backslashes before `"`
 * and `\` (RFC 2183), quoted as browsers do, where a backslash has no special meaning, or not
 * quoted.
 */
const parameterPattern = new RegExp(
  `;[ \\t]*(?:(${token})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|"([^"]*)"|([^ \\t";]+))[ \\t]*)?(?=;|$)`,
  'gy',
);

function parseParameters(text: string): ReadonlyMap<string, string> {
  const found = [...text.matchAll(parameterPattern)];
  const isWhole = found.reduce((length, [all]) => length + all.length, 0) === text.length;
  // A name in numbered pieces (RFC 2231 §3) would be no name.
  if (!isWhole || found.some(([, name = '']) => /^(?:file)?name\*\d/i.test(name))) {
    throw invalidMultipart('the disposition of a part cannot be read');
  }
  return toUnique(
    found.flatMap(([, name, escaped, plain, bare = '']) => {
      // Any other backslash separates the folders of a Windows path.
      const quoted = escaped?.replaceAll(/\\(["\\])/g, '$1') ?? plain;
      // The three characters that browsers escape (HTML, "multipart/form-data encoding algorithm").
      const value = quoted?.replaceAll(/%(?:22|0d|0a)/gi, decodeURIComponent) ?? bare;
      return name === undefined ? [] : [[name, value] as const];
    }),
  );
}

/** RFC 8187 §3.2.1 escapes more than `encodeURIComponent` does: what is left has one meaning. */
const extendedPattern = /^([\w-]+)'[\w-]*'((?:%[0-9a-f]{2}|[ -$&-~])*)$/i;
/** White space between two words is no part of the text (RFC 2047 §6.2). */
const wordPattern = /=\?([\w-]+)(?:\*[\w-]*)?\?([bq])\?([^? ]*)\?=(?:[ \t]+(?==\?))?/gi;

/** The extended form (RFC 8187 §3.2) takes precedence (RFC 6266 §4.3); else encoded words. */
function findText(parameters: ReadonlyMap<string, string>, name: string): string | undefined {
  const extended = parameters.get(`${name}*`);
  if (extended === undefined) return parameters.get(name)?.replaceAll(wordPattern, decodeWord);
  const [, charset = '', encoded = ''] = extendedPattern.exec(extended) ?? [];
  return decode(charset, toBytes(encoded));
}

function decodeWord(...[, charset = '', encoding = '', text = '']: readonly string[]): string {
  if (encoding.toLowerCase() === 'b') return decode(charset, Buffer.from(text, 'base64'));
  const escaped = text.replaceAll('%', '%25').replaceAll('=', '%').replaceAll('_', ' ');
  return decode(charset, toBytes(escaped));
}

function toBytes(escaped: string): Buffer {
  const toCharacter = (_all: string, hex: string): string =>
    String.fromCharCode(Number.parseInt(hex, 16));
  return Buffer.from(escaped.replaceAll(/%([0-9a-f]{2})/gi, toCharacter), 'latin1');
}

/** Fails for an unknown charset too. */
function decode(charset: string, bytes: Buffer): string {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    throw invalidMultipart('an encoded name cannot be read');
  }
}
