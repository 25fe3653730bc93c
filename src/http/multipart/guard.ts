/**
 * Checks a multipart body before busboy, which silently drops a part whose header block it cannot
 * parse, and decodes a part without a file name as text. The guard refuses lines that only begin
 * like a delimiter and limits header blocks. busboy gets the unchanged contents, each as a file
 * named after the number of its part, between delimiters made here.
 */

import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { AppError } from '../../errors.ts';
import { parseMediaType, token } from '../media-type.ts';

interface GuardSink {
  /** Receives the header lines of the next part, without the empty line after them. */
  head(block: Buffer): void;
  /** Receives the next bytes for busboy. A chunk with only content is not copied. */
  write(bytes: Buffer): void;
}

/**
 * The boundary of busboy's input. It has 192 random bits, so that no content contains it. It is
 * long, because busboy's search skips that many bytes at a time.
 */
export const busboyBoundary = `${randomBytes(24).toString('hex')}${'~'.repeat(1_000)}`;
const busboyDelimiter = `\r\n--${busboyBoundary}`;

/**
 * Limit for a header block, and for the text before the first and after the last delimiter, which
 * is ignored (RFC 2046 §5.1.1). The names of all parts stay in memory until the last one is
 * stored: 2 MiB for 1,000 parts, which is what a request with such a body reserves.
 */
const unseenBytesMax = 1_024;

const crlf = Buffer.from('\r\n');
const headEnd = Buffer.from('\r\n\r\n');
const noBytes = Buffer.alloc(0);

export class MultipartGuard {
  readonly #delimiter: Buffer;
  readonly #sink: GuardSink;
  #state: 'preamble' | 'head' | 'content' | 'epilogue' = 'preamble';
  /** Bytes that may begin a delimiter. The first delimiter needs no line end before it. */
  #held: Buffer = crlf;
  /** The line end after a header block can belong to a delimiter; it is not content. */
  #lineEndBytes = 0;
  /** The number of parts passed to busboy. */
  parts = 0;

  constructor(boundary: string, sink: GuardSink) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
    this.#sink = sink;
  }

  /** Receives the next bytes. Throws `invalid_multipart`, and the errors of the sink. */
  push(chunk: Buffer): void {
    let data = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = noBytes;
    while (data.length > 0) {
      const taken = this.#take(data);
      if (taken === 0) {
        this.#held = data;
        return;
      }
      data = data.subarray(taken);
    }
  }

  /** Call it at the end of the body. Throws `invalid_multipart` without a closing delimiter. */
  end(): void {
    if (this.#state !== 'epilogue') throw invalidMultipart('it ends before its closing delimiter');
  }

  /** Returns the number of bytes processed; 0 if more are needed. */
  #take(data: Buffer): number {
    if (this.#state === 'content') return this.#content(data);
    if (this.#state === 'head') return this.#head(data);
    const found = findNear(data, this.#delimiter);
    if (found === -1) return 0;
    if (this.#state === 'epilogue') throw invalidMultipart('a part follows its close');
    this.#state = 'head';
    return found + this.#delimiter.length;
  }

  /** After a delimiter: two dashes, which close the body, or a line end and a header block. */
  #head(data: Buffer): number {
    if (data.length < crlf.length) return 0;
    const start = data.toString('latin1', 0, crlf.length);
    if (start === '--') {
      this.#state = 'epilogue';
      this.#sink.write(Buffer.from(`${busboyDelimiter}--`));
      return start.length;
    }
    if (start !== '\r\n') throw invalidMultipart('a line begins with the delimiter but is none');
    // The search includes the delimiter's line end, so that it finds an empty block too.
    const found = findNear(data, headEnd);
    if (found === -1) return 0;
    this.#sink.head(data.subarray(crlf.length, found));
    this.parts += 1;
    const block = `Content-Disposition: form-data; name=${this.parts}; filename=part`;
    this.#sink.write(Buffer.from(`${busboyDelimiter}\r\n${block}\r\n\r\n`));
    this.#state = 'content';
    this.#lineEndBytes = crlf.length;
    return found + crlf.length;
  }

  #content(data: Buffer): number {
    const found = data.indexOf(this.#delimiter);
    const end = found === -1 ? this.#certainEnd(data) : found;
    if (end > this.#lineEndBytes) this.#sink.write(data.subarray(this.#lineEndBytes, end));
    if (end > 0) this.#lineEndBytes = 0;
    if (found === -1) return end;
    this.#state = 'head';
    return end + this.#delimiter.length;
  }

  /** The end of what cannot begin a delimiter. A boundary contains no line end. */
  #certainEnd(data: Buffer): number {
    const tail = data.subarray(Math.max(0, data.length - this.#delimiter.length + 1));
    const start = tail.lastIndexOf('\r');
    const isDelimiter = start !== -1 && this.#delimiter.indexOf(tail.subarray(start)) === 0;
    return isDelimiter ? data.length - tail.length + start : data.length;
  }
}

/** Returns the index of `needle`, or -1 if more bytes are needed. Throws beyond the limit. */
function findNear(data: Buffer, needle: Buffer): number {
  const found = data.indexOf(needle);
  if ((found === -1 ? data.length : found) > unseenBytesMax + crlf.length) {
    throw invalidMultipart(
      `a header block or text around the parts is over ${unseenBytesMax} bytes`,
    );
  }
  return found;
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

/**
 * Parses header lines (Spec §2.7, RFC 7578 §4), without the empty line after them; names are raw
 * UTF-8, as browsers send them. It is strict, because a part that is misread is lost: busboy would
 * accept duplicate names, an empty name as none, and `%22` unchanged. Throws `invalid_multipart`.
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
