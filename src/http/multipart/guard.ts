/**
 * Splits a multipart body at its delimiters into header blocks and content, and refuses lines that
 * only begin like a delimiter: busboy would end the content there.
 */

import { invalidMultipart } from './head.ts';

export interface GuardSink {
  /** Receives the header lines of the next part, without the empty line after them. */
  head(block: Buffer): void;
  /** Receives the next bytes of the content of that part, not copied. */
  content(bytes: Buffer): void;
  /** Called at the delimiter after that content. */
  end(): void;
}

/**
 * Limit for a header block, and for the text before the first and after the last delimiter, which
 * is ignored (RFC 2046 §5.1.1).
 */
const unseenBytesMax = 8_192;

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
      return start.length;
    }
    if (start !== '\r\n') throw invalidMultipart('a line begins with the delimiter but is none');
    // The search includes the delimiter's line end, so that it finds an empty block too.
    const found = findNear(data, headEnd);
    if (found === -1) return 0;
    this.#sink.head(data.subarray(crlf.length, found));
    this.#state = 'content';
    this.#lineEndBytes = crlf.length;
    return found + crlf.length;
  }

  #content(data: Buffer): number {
    const found = data.indexOf(this.#delimiter);
    const end = found === -1 ? this.#certainEnd(data) : found;
    if (end > this.#lineEndBytes) this.#sink.content(data.subarray(this.#lineEndBytes, end));
    if (end > 0) this.#lineEndBytes = 0;
    if (found === -1) return end;
    this.#sink.end();
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
