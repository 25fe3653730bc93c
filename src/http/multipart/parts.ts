/**
 * Reads a multipart/form-data body part by part, as raw bytes (Spec §4.4, §2.7). Nothing is read of
 * the body until a reader asks for more than there is.
 *
 *     body → busboy → part
 *          ↘ the delimiters, counted here
 *
 * busboy finds the parts and their contents. It drops parts without a word, and decodes a part
 * without a file name as text. Therefore the delimiters are counted on the way to it (R18):
 *
 * 1. Behind each delimiter three lines are put before the header block, so that busboy gives the
 *    content of every part as raw bytes; the block itself is kept for `parsePartHead`.
 * 2. At the next delimiter busboy must have found a part. Else the body is refused, as is one that
 *    ends too early.
 *
 * For example, a body with the boundary `b`:
 *
 *     --b⏎                                            the first delimiter
 *     Content-Disposition: form-data; name="a"⏎ ⏎     three lines, and this block
 *     one⏎--b                                         busboy gives `one` back; delimiter
 *     --                                              the close
 */

import type { Readable } from 'node:stream';
import createBusboy, { type Busboy } from 'busboy';
import { AppError } from '../../errors.ts';
import { poolIsFull, uncountedBytesMax } from '../../memory-pool.ts';
import type { OwnedBuffers } from '../../owned-buffers.ts';
import type { HttpRequest } from '../message.ts';
import { invalidMultipart, parsePartHead, type PartHead, tooLarge } from './headers.ts';

const noBytes = Buffer.alloc(0);
const crlf = Buffer.from('\r\n');
/**
 * Put behind each delimiter: busboy's search skips that many bytes at a time, which takes a tenth
 * off the CPU time of a large upload.
 */
const tail = '~'.repeat(256);
/** busboy takes the first header of each name. */
const rawHead = [
  '',
  'Content-Disposition: form-data; name=part',
  'Content-Type: application/octet-stream',
  '',
].join('\r\n');

/** Parts of one body: each opens a file, and all are stored or removed together. */
const partsMax = 1_000;
/** What a part keeps in memory until all are stored, beside the text of its header block. */
const partBytes = 1_024;
/** A name of 255 bytes can be sent twice, encoded (.NET), and takes over 1 KiB then. */
const headBytesMax = 8_192;
/** Writing 1 MiB at once takes two thirds of the time of sixteen writes of 64 KiB. */
const batchBytesMax = 1024 * 1024;
/** Limits tiny chunks, and what a slow client holds. */
const [batchChunksMax, batchMillisecondsMax] = [256, 4_000];

interface Part {
  readonly head: PartHead;
  /** What is not read of it is discarded. */
  readonly content: AsyncGenerator<OwnedBuffers, void, undefined>;
}

/** The parts of one body, to be read once. */
export class Parts {
  readonly #request: HttpRequest;
  readonly #bodyBytesMax: number;
  readonly #delimiter: Buffer;
  readonly #busboy: Busboy;
  /** What arrived and was not passed on. The first delimiter needs no line end before it. */
  #rest: Buffer = crlf;
  #bodyBytes = 0;
  #headBytes = 0;
  #count = 0;
  /** The empty line after a header block can be the line end of the next delimiter too. */
  #at: 'empty line' | 'text' | 'mark' = 'text';
  #isClosed = false;
  /** The content of the part in hand, once busboy has found it. */
  #stream: Readable | undefined;

  constructor(request: HttpRequest, boundary: string, bodyBytesMax: number) {
    this.#request = request;
    this.#bodyBytesMax = bodyBytesMax;
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
    const type = `multipart/form-data; boundary="${boundary}${tail}"`;
    // More than all content, so that busboy never waits for the reader.
    const fileHwm = bodyBytesMax + 1;
    this.#busboy = createBusboy({ headers: { 'content-type': type }, fileHwm });
    this.#busboy.on('file', (_name, stream) => (this.#stream = stream));
    // For a header block that cannot be read: the part is missing.
    this.#busboy.on('error', () => undefined);
  }

  /** Each part once the reader is done with the one before it. */
  async *read(): AsyncGenerator<Part, void, undefined> {
    await this.#skip();
    while (await this.#hasNext()) {
      yield { head: await this.#readHead(), content: this.#readContent() };
      await this.#skip();
      if (this.#stream === undefined) throw invalidMultipart('a part cannot be read');
    }
    do {
      if (this.#rest.includes(this.#delimiter)) throw invalidMultipart('a part follows its close');
      this.#rest = this.#rest.subarray(1 - this.#delimiter.length);
    } while (await this.#receive());
  }

  /** Content in batches, each until the next one is asked for. */
  async *#readContent(): AsyncGenerator<OwnedBuffers, void, undefined> {
    const { reservation } = this.#request;
    let batch: Buffer[] = [];
    let [bytes, since] = [0, 0];
    try {
      while (this.#at !== 'mark') {
        const text = this.#takeText();
        if (text === undefined) {
          await this.#receive();
          continue;
        }
        const chunk = this.#pass(text);
        if (chunk === null) continue;
        if (batch.length === 0) since = performance.now();
        batch.push(chunk);
        bytes += chunk.length;
        reservation.set(reservation.bytes + chunk.length);
        const isFull = batch.length >= batchChunksMax || bytes >= batchBytesMax;
        const isOld = performance.now() - since > batchMillisecondsMax;
        // Without memory for more, less is read at once.
        if (!isFull && !isOld && reservation.canGrow(batchBytesMax)) continue;
        yield batch;
        reservation.set(reservation.bytes - bytes);
        [batch, bytes] = [[], 0];
      }
      if (bytes > 0) yield batch;
    } finally {
      reservation.set(reservation.bytes - bytes);
    }
  }

  /** The preamble, or what the reader has left of a part. */
  async #skip(): Promise<void> {
    while (this.#at !== 'mark') {
      const text = this.#takeText();
      if (text === undefined) await this.#receive();
      else this.#pass(text);
    }
  }

  /** What has arrived of the bytes up to the next delimiter and with it. */
  #takeText(): Buffer | undefined {
    const data = this.#rest;
    const found = this.#findDelimiter(data);
    const end = found === -1 ? this.#safeEnd(data) : found + this.#delimiter.length;
    if (found === 0 && this.#at === 'empty line') this.#busboy.write(crlf);
    if (found !== -1) this.#at = 'mark';
    else if (end > 0) this.#at = 'text';
    // An empty slice would keep memory that the reader owns now.
    this.#rest = end === data.length ? noBytes : data.subarray(end);
    return end > 0 ? data.subarray(0, end) : undefined;
  }

  /** A line end without CR would make a delimiter part of a content, and hide the next part. */
  #findDelimiter(data: Buffer): number {
    const line = data.indexOf(this.#delimiter.subarray(1));
    if (line === -1) return -1;
    if (data[line - 1] === 0x0d) return line - 1;
    throw invalidMultipart('a line ends with LF alone');
  }

  /** The end of the bytes that cannot begin a delimiter. A boundary contains no line end. */
  #safeEnd(data: Buffer): number {
    // Only the end is searched: content can have no line end at all.
    const last = data.subarray(1 - this.#delimiter.length);
    const begun = last.subarray(last.lastIndexOf('\n'));
    const mayBegin = this.#delimiter.subarray(1, 1 + begun.length).equals(begun);
    const end = mayBegin ? data.length - begun.length : data.length;
    return data[end - 1] === 0x0d ? end - 1 : end;
  }

  /** What busboy makes of these bytes. */
  #pass(bytes: Buffer): Buffer | null {
    this.#busboy.write(bytes);
    // Taken at once, so that a chunk with only content is not copied.
    // Without the length, `read` returns the first piece alone from Node 26.
    return (this.#stream?.read(this.#stream.readableLength) as Buffer | null | undefined) ?? null;
  }

  /** Reads what follows a delimiter. False for the close. */
  async #hasNext(): Promise<boolean> {
    this.#busboy.write(tail);
    while (this.#rest.length < crlf.length) await this.#receive();
    const mark = this.#rest.toString('latin1', 0, crlf.length);
    this.#rest = this.#rest.subarray(crlf.length);
    this.#isClosed = mark === '--';
    if (this.#isClosed || mark === '\r\n') return !this.#isClosed;
    throw invalidMultipart(
      mark.startsWith('\n')
        ? 'a line ends with LF alone'
        : 'a line begins with the delimiter but is none',
    );
  }

  /** Reads the lines of a header block. The empty line stays: it can belong to a delimiter. */
  async #readHead(): Promise<PartHead> {
    let end = this.#rest.indexOf('\r\n\r\n');
    for (; end === -1; end = this.#rest.indexOf('\r\n\r\n')) {
      checkHeadBytes(this.#rest.length - crlf.length);
      await this.#receive();
    }
    checkHeadBytes(end);
    this.#countPart(2 * end + partBytes);
    const block = this.#rest.subarray(0, end);
    if (Buffer.concat([crlf, block]).includes(this.#delimiter)) {
      throw invalidMultipart('a delimiter stands in a header block');
    }
    this.#stream = undefined;
    for (const lines of [rawHead, block, crlf]) this.#busboy.write(lines);
    this.#rest = this.#rest.subarray(end + crlf.length);
    this.#at = 'empty line';
    return parsePartHead(block);
  }

  #countPart(bytes: number): void {
    this.#count += 1;
    this.#headBytes += bytes;
    if (this.#count > partsMax) {
      throw new AppError('content_too_large', `There are more than ${partsMax} parts.`);
    }
    const isCounted = this.#headBytes > uncountedBytesMax;
    if (isCounted && !this.#request.reservation.grow(bytes)) throw poolIsFull();
  }

  /** Waits for more of the body. Returns false at its end, which must come after its close. */
  async #receive(): Promise<boolean> {
    const chunk = await this.#request.readChunk();
    if (chunk.length === 0 && !this.#isClosed) {
      throw invalidMultipart('it ends before its closing delimiter');
    }
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes > this.#bodyBytesMax) {
      throw tooLarge('The multipart body', this.#bodyBytesMax);
    }
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    return chunk.length > 0;
  }
}

function checkHeadBytes(bytes: number): void {
  if (bytes <= headBytesMax) return;
  throw invalidMultipart(`a header block is over ${headBytesMax} bytes`);
}
