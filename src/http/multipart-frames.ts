/**
 * Finds the delimiters of a multipart body (RFC 2046 §5.1.1) in chunks of any size, and copies
 * nothing of a part's content. It is strict: whatever is not exactly a delimiter line, a bounded
 * header block or the close is refused, since a lenient reader loses parts.
 */

import { invalidMultipart } from './multipart-head.ts';

/** What the parts are handed to, in order: one head, any number of contents, one end. */
export interface FrameSink {
  /** The header lines, without the empty line that ends them. */
  head(block: Buffer): void;
  /** Bytes of the part. They belong to the sink: they are never changed later. */
  content(bytes: Buffer): void;
  partEnd(): void;
}

/** Header block of one part; also the blanks after a delimiter. */
const partHeadBytesMax = 8_192;
/** Text before the first and after the last delimiter, which nobody reads (RFC 2046 §5.1.1). */
const marginBytesMax = 8_192;

const crlf = Buffer.from('\r\n');
const headEnd = Buffer.from('\r\n\r\n');
const [carriageReturn, lineFeed, dash, space, tab] = [13, 10, 45, 32, 9];

type State = 'preamble' | 'delimiter' | 'head' | 'content' | 'close' | 'epilogue';

export class MultipartFrames {
  readonly #delimiter: Buffer;
  readonly #sink: FrameSink;
  #state: State = 'preamble';
  /** Bytes that cannot be judged yet. The first delimiter needs no line end before it. */
  #held: Buffer | undefined = crlf;
  /** Pieces of content in the bytes that were taken last, and the last of them. */
  #pieces = 0;
  #piece: Buffer | undefined;

  constructor(boundary: string, sink: FrameSink) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
    this.#sink = sink;
  }

  /**
   * Takes the next bytes; throws `invalid_multipart` and whatever the sink throws. Gives the one
   * piece of content that was in them, where nothing else in their memory is needed any more.
   */
  push(chunk: Buffer): Buffer | undefined {
    const data = this.#held === undefined ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = undefined;
    this.#pieces = 0;
    let at = 0;
    while (at < data.length) {
      const next = this.#step(data, at);
      if (next === undefined) {
        this.#held = at === 0 ? data : data.subarray(at);
        return undefined;
      }
      at = next;
    }
    const isWhole = data.byteLength === data.buffer.byteLength;
    return isWhole && this.#pieces === 1 ? this.#piece : undefined;
  }

  /** The body has ended: throws `invalid_multipart` where its close has not been seen. */
  end(): void {
    if (this.#state === 'epilogue') return;
    if (this.#state === 'close' && onlyBlanks(this.#held)) return;
    throw invalidMultipart('it ends before its closing delimiter');
  }

  /** The index of the first byte not taken, or undefined where more bytes are needed. */
  #step(data: Buffer, at: number): number | undefined {
    switch (this.#state) {
      case 'content':
        return this.#content(data, at);
      case 'preamble':
        return this.#preamble(data, at);
      case 'delimiter':
        return this.#afterDelimiter(data, at);
      case 'head':
        return this.#head(data, at);
      case 'close':
        return this.#lineEnd(data, at, 'epilogue');
      case 'epilogue':
        break;
    }
    return this.#epilogue(data, at);
  }

  #content(data: Buffer, at: number): number | undefined {
    const found = data.indexOf(this.#delimiter, at);
    const end = found === -1 ? this.#certainEnd(data, at) : found;
    if (end > at) {
      this.#pieces += 1;
      this.#piece = at === 0 && end === data.length ? data : data.subarray(at, end);
      this.#sink.content(this.#piece);
    }
    if (found === -1) return end === at ? undefined : end;
    return this.#endPart(found);
  }

  #endPart(delimiterAt: number): number {
    this.#sink.partEnd();
    this.#state = 'delimiter';
    return delimiterAt + this.#delimiter.length;
  }

  /** Up to where no delimiter can begin, whatever comes next. */
  #certainEnd(data: Buffer, at: number): number {
    const from = Math.max(at, data.length - this.#delimiter.length + 1);
    let end = data.indexOf(carriageReturn, from);
    while (end !== -1) {
      if (data.compare(this.#delimiter, 0, data.length - end, end) === 0) return end;
      end = data.indexOf(carriageReturn, end + 1);
    }
    return data.length;
  }

  #preamble(data: Buffer, at: number): number | undefined {
    const found = data.indexOf(this.#delimiter, at);
    if ((found === -1 ? data.length : found) - at > marginBytesMax + crlf.length) {
      throw invalidMultipart('its first delimiter is not found');
    }
    if (found === -1) return undefined;
    this.#state = 'delimiter';
    return found + this.#delimiter.length;
  }

  /** Two dashes close the body; blanks and a line end open a part; all else is refused. */
  #afterDelimiter(data: Buffer, at: number): number | undefined {
    if (data[at] !== dash) return this.#lineEnd(data, at, 'head');
    if (at + 1 === data.length) return undefined;
    if (data[at + 1] !== dash) throw badDelimiter();
    this.#state = 'close';
    return at + 2;
  }

  /** Blanks (RFC 2046 calls them transport padding) and a line end, which stays for `head`. */
  #lineEnd(data: Buffer, at: number, next: 'head' | 'epilogue'): number | undefined {
    let end = at;
    while (data[end] === space || data[end] === tab) end += 1;
    if (end - at > partHeadBytesMax) throw badDelimiter();
    if (end === data.length) return undefined;
    if (data[end] !== carriageReturn) throw badDelimiter();
    if (end + 1 === data.length) return undefined;
    if (data[end + 1] !== lineFeed) throw badDelimiter();
    this.#state = next;
    return end;
  }

  /** Begins at the line end of the delimiter, so that an empty block is found like any other. */
  #head(data: Buffer, at: number): number | undefined {
    const found = data.indexOf(headEnd, at);
    if ((found === -1 ? data.length : found) - at > partHeadBytesMax) {
      throw invalidMultipart(`a header block is longer than ${partHeadBytesMax} bytes`);
    }
    if (found === -1) return undefined;
    // A part without content may share the line end of its empty line with the next delimiter.
    const body = found + crlf.length;
    const known = Math.min(data.length - body, this.#delimiter.length);
    const shared = data.compare(this.#delimiter, 0, known, body, body + known) === 0;
    if (shared && known < this.#delimiter.length) return undefined;
    this.#sink.head(data.subarray(Math.min(at + crlf.length, found), found));
    if (shared) return this.#endPart(body);
    this.#state = 'content';
    return found + headEnd.length;
  }

  #epilogue(data: Buffer, at: number): number | undefined {
    if (data.length - at > marginBytesMax) throw invalidMultipart('too much follows its close');
    if (data.indexOf(this.#delimiter, at) !== -1)
      throw invalidMultipart('a part follows its close');
    return undefined;
  }
}

function onlyBlanks(held: Buffer | undefined): boolean {
  return held === undefined || held.every((byte) => byte === space || byte === tab);
}

function badDelimiter(): Error {
  return invalidMultipart('a line begins with the delimiter but is none');
}
