/**
 * Reads a multipart/form-data body part by part, as raw bytes (Spec §4.4, §2.7). Nothing is read of
 * the body until a reader asks for more than there is.
 *
 *     body → guard (this file) → busboy → part
 *
 * The guard is the parser, and busboy is the second opinion. busboy silently drops a part whose
 * header block it cannot parse, and decodes a part without a file name as text. Therefore the guard
 * finds the delimiters, refuses lines that only begin like one, limits and parses the header
 * blocks, and passes the contents to busboy unchanged, each as a file between delimiters made here.
 * A body in which busboy finds another number of parts is refused.
 *
 *     state      reads                              next state
 *     preamble   text up to the first delimiter     delimiter
 *     delimiter  two bytes: a line end, or `--`     header, or epilogue; else refused
 *     header     lines up to an empty one           content; `next()` returns the header block
 *     content    bytes up to the next delimiter     delimiter
 *     epilogue   text up to the end of the body     –; `next()` returns nothing
 *
 * The body must not end before the epilogue. For example, a body with the boundary `b`:
 *
 *     --b⏎                                            preamble (empty), delimiter
 *     Content-Disposition: form-data; name="a"⏎ ⏎     header; busboy gets a header block made here
 *     one⏎--b                                         content: busboy gets `one`, and a delimiter
 *     --                                              delimiter, epilogue (empty)
 */

import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import createBusboy, { type Busboy } from 'busboy';
import { AppError } from '../../errors.ts';
import { poolIsFull, type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import type { OwnedBuffers } from '../../owned-buffers.ts';
import type { HttpRequest } from '../message.ts';
import { invalidMultipart, parsePartHead, type PartHead, tooLarge } from './headers.ts';

/**
 * The boundary of busboy's input. It has 192 random bits, so that no content contains it. It is
 * long, because busboy's search skips that many bytes at a time.
 */
export const busboyBoundary = `${randomBytes(24).toString('hex')}${'~'.repeat(1_000)}`;
const busboyDelimiter = Buffer.from(`\r\n--${busboyBoundary}`);
const busboyHead = Buffer.from(
  '\r\nContent-Disposition: form-data; name=part; filename=part\r\n\r\n',
);

const noBytes = Buffer.alloc(0);
const crlf = Buffer.from('\r\n');
const headEnd = Buffer.from('\r\n\r\n');

/** Parts of one body: each opens a file, and all are stored or removed together. */
const partsMax = 1_000;
/** What a part keeps in memory until all are stored, beside the text of its header block. */
const partBytes = 1_024;
/**
 * Limit for a header block, and for the text before the first and after the last delimiter, which
 * is ignored (RFC 2046 §5.1.1). The names of all parts stay in memory until the last one is
 * stored: 2 MiB for 1,000 parts, which is what a request with such a body reserves.
 */
const unseenBytesMax = 1_024;
/** Writing 1 MiB at once takes two thirds of the time of sixteen writes of 64 KiB. */
const batchBytesMax = 1024 * 1024;
/** Limits tiny chunks, and what a slow client holds. */
const [batchChunksMax, batchMillisecondsMax] = [256, 4_000];

/** The parts of one body. */
export class Parts {
  readonly #request: HttpRequest;
  readonly #reservation: Reservation;
  readonly #bodyBytesMax: number;
  readonly #delimiter: Buffer;
  readonly #busboy: Busboy;
  /** What arrived and was not passed on. The first delimiter needs no line end before it. */
  #rest: Buffer = crlf;
  #bodyBytes = 0;
  #headBytes = 0;
  #count = 0;
  #state: 'preamble' | 'delimiter' | 'header' | 'content' | 'epilogue' = 'preamble';
  /** What busboy has found: the number of parts, and the content of the last one. */
  #found = 0;
  #stream: Readable | undefined;
  /** Content that the reader has not got, or is using. */
  #batch: Buffer[] = [];
  #batchBytes = 0;
  #batchSince = 0;

  constructor(request: HttpRequest, boundary: string, bodyBytesMax: number) {
    this.#request = request;
    this.#reservation = request.reservation;
    this.#bodyBytesMax = bodyBytesMax;
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
    this.#busboy = createBusboy({
      headers: { 'content-type': `multipart/form-data; boundary=${busboyBoundary}` },
    });
    this.#busboy.on('file', (_name, stream) => {
      this.#found += 1;
      this.#stream = stream;
    });
    this.#busboy.write(busboyDelimiter);
  }

  /** Returns the header block of the next part, or none at the end. */
  async next(): Promise<PartHead | undefined> {
    this.#releaseBatch();
    for (;;) {
      switch (this.#state) {
        case 'preamble':
          await this.#readTo(this.#delimiter);
          this.#state = 'delimiter';
          break;
        case 'delimiter':
          this.#state = await this.#readDelimiterEnd();
          break;
        case 'header':
          return this.#readHeader();
        case 'content':
          // The reader has left some.
          for await (const batch of this.content()) void batch;
          break;
        case 'epilogue':
          return this.#readEpilogue();
      }
    }
  }

  /** The content of the part that `next` has returned. */
  async *content(): AsyncGenerator<OwnedBuffers, void, undefined> {
    while (this.#state === 'content') {
      if (!this.#passContent()) await this.#receive();
      const isLast = this.#state !== 'content';
      if (this.#batchBytes === 0 || !(isLast || this.#isBatchFull())) continue;
      yield this.#batch;
      this.#releaseBatch();
    }
  }

  /** Passes on the content that has arrived, up to the next delimiter. False: nothing arrived. */
  #passContent(): boolean {
    const data = this.#rest;
    const found = data.indexOf(this.#delimiter);
    const end = found === -1 ? this.#safeEnd(data) : found;
    if (end > 0) this.#pass(data.subarray(0, end));
    // An empty slice would keep memory that the reader owns now.
    this.#rest = end === data.length ? noBytes : data.subarray(end);
    if (found === -1) return end > 0;
    this.#rest = this.#rest.subarray(this.#delimiter.length);
    this.#state = 'delimiter';
    this.#pass(busboyDelimiter);
    if (this.#found !== this.#count) throw invalidMultipart('a part cannot be read');
    return true;
  }

  /** The end of the bytes that cannot begin a delimiter. A boundary contains no line end. */
  #safeEnd(data: Buffer): number {
    // Only the tail is searched: content can have no line end at all.
    const tail = data.subarray(1 - this.#delimiter.length);
    const start = tail.lastIndexOf('\r');
    if (start === -1) return data.length;
    const begun = tail.subarray(start);
    const mayBegin = this.#delimiter.subarray(0, begun.length).equals(begun);
    return mayBegin ? data.length - begun.length : data.length;
  }

  /** Adds what busboy makes of these bytes to the batch. */
  #pass(bytes: Buffer): void {
    this.#busboy.write(bytes);
    // Taken at once, so that busboy never waits, and a chunk with only content is not copied.
    // Without the length, `read` returns the first piece alone from Node 26.
    const chunk = this.#stream?.read(this.#stream.readableLength) as Buffer | null | undefined;
    if (!chunk) return;
    this.#reservation.set(this.#reservation.bytes + chunk.length);
    if (this.#batch.length === 0) this.#batchSince = performance.now();
    this.#batch.push(chunk);
    this.#batchBytes += chunk.length;
  }

  #isBatchFull(): boolean {
    if (performance.now() - this.#batchSince > batchMillisecondsMax) return true;
    if (this.#batch.length >= batchChunksMax || this.#batchBytes >= batchBytesMax) return true;
    // Without memory for more, less is read at once.
    return !this.#reservation.canGrow(batchBytesMax);
  }

  #releaseBatch(): void {
    this.#reservation.set(this.#reservation.bytes - this.#batchBytes);
    this.#batch = [];
    this.#batchBytes = 0;
  }

  #countPart(bytes: number): void {
    if (this.#count === partsMax) {
      throw new AppError('content_too_large', `There are more than ${partsMax} parts.`);
    }
    this.#count += 1;
    this.#headBytes += bytes;
    if (this.#headBytes > uncountedBytesMax && !this.#reservation.grow(bytes)) throw poolIsFull();
  }

  /** Takes the bytes before `mark`, and the mark, from the rest. The mark must come soon. */
  async #readTo(mark: Buffer): Promise<Buffer> {
    let found = findNear(this.#rest, mark);
    while (found === -1) {
      await this.#receive();
      found = findNear(this.#rest, mark);
    }
    const before = this.#rest.subarray(0, found);
    this.#rest = this.#rest.subarray(found + mark.length);
    return before;
  }

  async #readDelimiterEnd(): Promise<'header' | 'epilogue'> {
    await this.#receiveUpTo(crlf.length);
    const end = this.#rest.toString('latin1', 0, crlf.length);
    if (end === '--') return 'epilogue';
    if (end === '\r\n') return 'header';
    throw invalidMultipart('a line begins with the delimiter but is none');
  }

  async #readHeader(): Promise<PartHead> {
    // The search includes the delimiter's line end, so that it finds an empty block too.
    const block = await this.#readTo(headEnd);
    this.#countPart(2 * block.length + partBytes);
    const head = parsePartHead(block.subarray(crlf.length));
    // The line end after a header block can belong to the next delimiter.
    const start = this.#delimiter.subarray(crlf.length);
    await this.#receiveUpTo(start.length);
    if (this.#rest.subarray(0, start.length).equals(start)) {
      this.#rest = Buffer.concat([crlf, this.#rest]);
    }
    this.#state = 'content';
    this.#pass(busboyHead);
    return head;
  }

  async #readEpilogue(): Promise<undefined> {
    do {
      if (findNear(this.#rest, this.#delimiter) !== -1) {
        throw invalidMultipart('a part follows its close');
      }
    } while (await this.#receive());
  }

  async #receiveUpTo(length: number): Promise<void> {
    while (this.#rest.length < length) await this.#receive();
  }

  /** Waits for more of the body. Returns false at its end, which must come in the epilogue. */
  async #receive(): Promise<boolean> {
    const chunk = await this.#request.readChunk();
    if (chunk.length === 0 && this.#state !== 'epilogue') {
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
