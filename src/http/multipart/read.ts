/**
 * Reads a multipart/form-data body part by part, as raw bytes (Spec §4.4, §2.7): body → guard →
 * busboy → part. Nothing is read of the body until a reader asks for more than there is.
 *
 * busboy silently drops a part whose header block it cannot parse, and decodes a part without a
 * file name as text. Therefore a guard finds the delimiters, refuses lines that only begin like
 * one, limits and parses the header blocks, and passes the contents to busboy unchanged, each as a
 * file between delimiters made here.
 */

import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import createBusboy, { type Busboy } from 'busboy';
import { AppError } from '../../errors.ts';
import { type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import { type OwnOrigins, refuseForeign } from '../origins.ts';
import { append, memoryOf, poolIsFull } from '../server/body.ts';
import type { HttpRequest } from '../message.ts';
import { findBoundary, invalidMultipart, parsePartHead, type PartHead } from './headers.ts';

interface MultipartRules extends OwnOrigins {
  /** The limit for the whole body. */
  readonly uploadBytesMax: number;
}

/**
 * Called with each part in turn. When its promise resolves, content that it did not read is
 * discarded and the next part follows. A rejection ends the reading.
 */
export type PartReader = (part: PartHead, content: PartContent) => Promise<void>;

/** The content of a part in batches, which the reader then owns. Fails if the body ends early. */
type PartContent = AsyncIterable<readonly Buffer[]>;

/**
 * Reads all parts. Rejects with `unsupported_media_type`, `foreign_origin`, `invalid_multipart`,
 * `content_too_large`, ClientGone, or the error of `onPart`; by then no part is being read and the
 * request has no listeners.
 *
 * Browsers send forms of this type to other sites without a preflight. R27 is checked here, so that
 * no route can omit it.
 */
export async function readMultipart(
  request: HttpRequest,
  rules: MultipartRules,
  onPart: PartReader,
): Promise<void> {
  const boundary = findBoundary(request.header('content-type'));
  refuseForeign(request, rules);
  if (Number(request.header('content-length')) > rules.uploadBytesMax) {
    throw tooLarge('The multipart body', rules.uploadBytesMax);
  }
  const parts = new Parts(request, boundary, rules.uploadBytesMax);
  for (let head = await parts.next(); head !== undefined; head = await parts.next()) {
    await onPart(head, parts.content());
  }
}

/**
 * Reads the whole content of a text part, at most `bytesMax` bytes. Reserves the memory that it can
 * take as JSON; throws `overloaded` if there is no memory.
 */
export async function readPart(
  content: PartContent,
  bytesMax: number,
  reservation: Reservation,
): Promise<Buffer> {
  let space: Buffer = Buffer.alloc(0);
  let length = 0;
  let reserved = 0;
  for await (const batch of content) {
    for (const chunk of batch) {
      space = append(space, length, chunk);
      length += chunk.length;
    }
    if (length > bytesMax) throw tooLarge('A text part', bytesMax);
    if (length <= uncountedBytesMax) continue;
    if (!reservation.grow(memoryOf(length) - reserved)) throw poolIsFull();
    reserved = memoryOf(length);
  }
  return space.subarray(0, length);
}

function tooLarge(what: string, bytesMax: number): AppError {
  return new AppError('content_too_large', `${what} is larger than ${bytesMax} bytes.`);
}

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
class Parts {
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
  #isInPart = false;
  #isClosed = false;
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

  /** Discards what is left of the last part; returns the next one's head, or none at the end. */
  async next(): Promise<PartHead | undefined> {
    this.#releaseBatch();
    while (this.#isInPart) {
      if (!this.#passContent()) await this.#receive();
      this.#releaseBatch();
    }
    if (this.#count === 0) await this.#readTo(this.#delimiter);
    while (this.#rest.length < crlf.length) await this.#receive();
    if (this.#rest.toString('latin1', 0, crlf.length) === '--') return this.#readEpilogue();
    if (this.#rest.indexOf(crlf) !== 0) {
      throw invalidMultipart('a line begins with the delimiter but is none');
    }
    // The search includes the delimiter's line end, so that it finds an empty block too.
    const block = await this.#readTo(headEnd);
    this.#countPart(2 * block.length + partBytes);
    const head = parsePartHead(block.subarray(crlf.length));
    await this.#keepLineEnd();
    this.#isInPart = true;
    this.#pass(busboyHead);
    return head;
  }

  /** The content of the part that `next` has returned. */
  async *content(): AsyncGenerator<readonly Buffer[], void, undefined> {
    while (this.#isInPart) {
      if (!this.#passContent()) await this.#receive();
      if (this.#batchBytes === 0 || (this.#isInPart && !this.#isBatchFull())) continue;
      yield this.#batch;
      this.#releaseBatch();
    }
  }

  /** Passes on the content that has arrived, up to the next delimiter. False: there is none. */
  #passContent(): boolean {
    const data = this.#rest;
    const found = data.indexOf(this.#delimiter);
    const end = found === -1 ? this.#certainEnd(data) : found;
    if (end > 0) this.#pass(data.subarray(0, end));
    // No empty slice: the reader can give the memory of a chunk back.
    this.#rest = end === data.length ? noBytes : data.subarray(end);
    if (found === -1) return end > 0;
    this.#rest = this.#rest.subarray(this.#delimiter.length);
    this.#isInPart = false;
    this.#pass(busboyDelimiter);
    if (this.#found !== this.#count) throw invalidMultipart('a part cannot be read');
    return true;
  }

  /** The end of what cannot begin a delimiter. A boundary contains no line end. */
  #certainEnd(data: Buffer): number {
    const tail = data.subarray(Math.max(0, data.length - this.#delimiter.length + 1));
    const start = tail.lastIndexOf('\r');
    const isDelimiter = start !== -1 && this.#delimiter.indexOf(tail.subarray(start)) === 0;
    return isDelimiter ? data.length - tail.length + start : data.length;
  }

  /** Adds what busboy makes of these bytes to the batch. */
  #pass(bytes: Buffer): void {
    this.#busboy.write(bytes);
    // Taken at once, so that busboy never waits, and a chunk with only content is not copied.
    const chunk = this.#stream?.read() as Buffer | null | undefined;
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

  /** Returns the bytes before `mark`, which must come soon, and removes both. */
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

  /** The line end after a header block can belong to the next delimiter. */
  async #keepLineEnd(): Promise<void> {
    const start = this.#delimiter.subarray(crlf.length);
    while (this.#rest.length < start.length) await this.#receive();
    if (this.#rest.subarray(0, start.length).equals(start)) {
      this.#rest = Buffer.concat([crlf, this.#rest]);
    }
  }

  async #readEpilogue(): Promise<undefined> {
    this.#isClosed = true;
    do {
      if (findNear(this.#rest, this.#delimiter) !== -1) {
        throw invalidMultipart('a part follows its close');
      }
    } while (await this.#receive());
  }

  /** Waits for more of the body. Returns false at its end, which must follow the close. */
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
