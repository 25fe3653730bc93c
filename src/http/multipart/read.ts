/**
 * Reads a multipart/form-data body part by part, as raw bytes (Spec §4.4, §2.7). The guard checks
 * the bytes, busboy separates the parts, and their chunks are batched for the reader.
 */

import type { Readable } from 'node:stream';
import createBusboy, { type Busboy } from 'busboy';
import type { ByteSource } from '../../byte-source.ts';
import { AppError } from '../../errors.ts';
import { type OwnOrigins, refuseForeign } from '../cross-site.ts';
import { GatheredBytes } from '../server/gathered-bytes.ts';
import { parseMediaType } from '../media-type.ts';
import type { HttpRequest } from '../message.ts';
import { Batches } from './batches.ts';
import { busboyBoundary, MultipartGuard } from './guard.ts';
import { invalidMultipart, parsePartHead, type PartHead } from './head.ts';

export interface MultipartRules extends OwnOrigins {
  /** The limit for the whole body. */
  readonly uploadBytesMax: number;
}

/**
 * Called with each part in turn. When its promise resolves, content that it did not read is
 * discarded and the next part follows. A rejection ends the reading.
 */
export type PartReader = (part: PartHead, content: ByteSource) => Promise<void>;

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
  const reading = new MultipartReading(request, boundary, rules);
  void reading.receive();
  try {
    for (let batch = await reading.parts.next(); batch.length > 0;) {
      for (const { head, content } of batch) {
        await onPart(head, content);
        // Discards the rest of the content.
        while ((await content.next()).length > 0);
      }
      batch = await reading.parts.next();
    }
  } catch (error) {
    throw reading.stop(error);
  }
}

/** Reads the whole content of a text part, at most `bytesMax` bytes. */
export async function readPart(content: ByteSource, bytesMax: number): Promise<Buffer> {
  const bytes = new GatheredBytes();
  for (let batch = await content.next(); batch.length > 0; batch = await content.next()) {
    for (const chunk of batch) bytes.add(chunk);
    if (bytes.length > bytesMax) throw tooLarge('A text part', bytesMax);
  }
  return bytes.take();
}

/** RFC 2046 §5.1.1: 1 to 70 characters of a short list; the last one is not a space. */
const boundaryPattern = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;

function findBoundary(contentType: string | undefined): string {
  const type = contentType === undefined ? undefined : parseMediaType(contentType);
  if (type?.essence !== 'multipart/form-data') {
    throw new AppError('unsupported_media_type', 'The body must be multipart/form-data.', {
      accept: 'multipart/form-data',
    });
  }
  const boundary = type.parameters.get('boundary');
  if (boundary === undefined || !boundaryPattern.test(boundary)) {
    throw invalidMultipart('its media type has no valid boundary');
  }
  return boundary;
}

function tooLarge(what: string, bytesMax: number): AppError {
  return new AppError('content_too_large', `${what} is larger than ${bytesMax} bytes.`);
}

interface Part {
  readonly head: PartHead;
  readonly content: Batches<Buffer>;
}

/** Parts of one body: each opens a file, and all are stored or removed together. */
const partsMax = 1_000;
/** Writing 1 MiB at once takes two thirds of the time of sixteen writes of 64 KiB. */
const batchBytesMax = 1024 * 1024;
/** Limits tiny chunks: each takes memory in addition to its bytes. */
const batchChunksMax = 256;

/** The reading of one body: source → guard → busboy → `parts`. */
class MultipartReading {
  readonly parts: Batches<Part>;
  readonly #request: HttpRequest;
  /** Resumes the reading of the body. */
  #goOn: (() => void) | undefined;
  readonly #rules: MultipartRules;
  readonly #guard: MultipartGuard;
  readonly #busboy: Busboy;
  /** The heads of parts that busboy has not delivered yet. */
  readonly #heads: PartHead[] = [];
  /** The content of the part that is arriving. Earlier parts are complete. */
  #content: Batches<Buffer> | undefined;
  #bodyBytes = 0;
  #delivered = 0;
  #failure: Error | undefined;

  constructor(request: HttpRequest, boundary: string, rules: MultipartRules) {
    this.#request = request;
    this.#rules = rules;
    // The source pauses while a part waits.
    this.parts = new Batches({ countMax: 1, bytesMax: Infinity, onTaken: this.#resume });
    this.#busboy = createBusboy({
      headers: { 'content-type': `multipart/form-data; boundary=${busboyBoundary}` },
      // So that `drain` follows each write.
      highWaterMark: 1,
    });
    this.#busboy
      .on('file', (name, stream) => this.#deliver(name, stream))
      .on('drain', this.#resume)
      .on('error', () => this.#refuse())
      .on('finish', () => this.#finish());
    this.#guard = new MultipartGuard(boundary, {
      head: (block) => this.#announce(block),
      write: (bytes) => this.#busboy.write(bytes),
    });
  }

  /** Stops the reading with this error. Returns the error of the first call. */
  stop(error: unknown): Error {
    if (this.#failure !== undefined) return this.#failure;
    this.#failure = error instanceof Error ? error : new Error('a part was refused');
    this.#goOn?.();
    this.#content?.fail(this.#failure);
    this.parts.fail(this.#failure);
    return this.#failure;
  }

  /** Reads the body, as fast as the parts are read. */
  async receive(): Promise<void> {
    try {
      for (;;) {
        const chunk = await this.#request.readChunk();
        if (this.#failure !== undefined) return;
        if (chunk.length === 0) break;
        this.#take(chunk);
        while (this.#failure === undefined && this.#mustWait()) {
          await new Promise<void>((resolve) => (this.#goOn = resolve));
        }
      }
      this.#guard.end();
      this.#busboy.end();
    } catch (error) {
      this.stop(error);
    }
  }

  #take(chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
    const { uploadBytesMax } = this.#rules;
    if (this.#bodyBytes > uploadBytesMax) throw tooLarge('The multipart body', uploadBytesMax);
    this.#guard.push(chunk);
  }

  readonly #resume = (): void => this.#goOn?.();

  #mustWait(): boolean {
    const isBusy = this.#busboy.writableLength > 0;
    return isBusy || this.parts.isFull || this.#content?.isFull === true;
  }

  #announce(block: Buffer): void {
    if (this.#guard.parts === partsMax) {
      throw new AppError('content_too_large', `There are more than ${partsMax} parts.`);
    }
    this.#heads.push(parsePartHead(block));
  }

  /** The part from busboy must be the next one announced. */
  #deliver(name: string, stream: Readable): void {
    const head = this.#heads.shift();
    this.#delivered += 1;
    if (head === undefined || name !== String(this.#delivered)) this.#refuse();
    const content = new Batches<Buffer>({
      countMax: batchChunksMax,
      bytesMax: batchBytesMax,
      room: this.#request.room,
      onTaken: this.#resume,
    });
    // Never paused: the source pauses when the batch is full.
    stream
      .on('data', (chunk: Buffer) => content.push(chunk, chunk.length))
      .on('end', () => content.end())
      .on('error', () => this.#refuse());
    this.#content = content;
    if (head !== undefined) this.parts.push({ head, content }, 0);
  }

  #finish(): void {
    if (this.#delivered === this.#guard.parts) this.parts.end();
    else this.#refuse();
  }

  /** Messages of busboy are not shown to clients. */
  #refuse(): void {
    this.stop(invalidMultipart('a part cannot be read'));
  }
}
