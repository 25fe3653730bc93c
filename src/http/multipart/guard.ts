/**
 * Checks a multipart body before busboy, which silently drops a part whose header block it cannot
 * parse, and decodes a part without a file name as text. The guard refuses lines that only begin
 * like a delimiter and limits header blocks. busboy gets the unchanged contents, each as a file
 * named after the number of its part, between delimiters made here.
 */

import { randomBytes } from 'node:crypto';
import { invalidMultipart } from './head.ts';

export interface GuardSink {
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
  #parts = 0;

  constructor(boundary: string, sink: GuardSink) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
    this.#sink = sink;
  }

  /** The number of parts passed to busboy. */
  get parts(): number {
    return this.#parts;
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
    this.#parts += 1;
    const block = `Content-Disposition: form-data; name=${this.#parts}; filename=part`;
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
