/**
 * Reads a multipart/form-data body part by part, each as raw bytes (Spec §4.4, §2.7): bytes pass
 * the guard, busboy makes a stream of each part, and its chunks are gathered for the reader.
 */

import type { Readable } from 'node:stream';
import createBusboy, { type Busboy } from 'busboy';
import type { ByteSource } from '../../byte-source.ts';
import { AppError } from '../../errors.ts';
import { ClientGone } from '../server/body.ts';
import { type OwnOrigins, refuseForeign } from '../cross-site.ts';
import { GatheredBytes } from '../server/gathered-bytes.ts';
import { parseMediaType } from '../media-type.ts';
import type { BodyFlow, BodySink, HttpRequest } from '../message.ts';
import { Batches } from './batches.ts';
import { busboyBoundary, MultipartGuard } from './guard.ts';
import { invalidMultipart, parsePartHead, type PartHead } from './head.ts';

export type { PartHead } from './head.ts';

export interface MultipartRules extends OwnOrigins {
  /** The whole body, and so also one part. */
  readonly uploadBytesMax: number;
}

/**
 * Is given one part after the other. The next part comes when the promise is settled; content
 * that was not read is then thrown away. A rejection ends the reading.
 */
export type PartReader = (part: PartHead, content: ByteSource) => Promise<void>;

/**
 * Reads all parts. Rejects with `unsupported_media_type`, `foreign_origin`, `invalid_multipart`,
 * `content_too_large`, ClientGone, or with what `onPart` rejected with; by then no part is being
 * read and nothing listens to the request any more.
 *
 * A browser sends forms of this type to other sites without asking them first, so that R27 stands
 * here, where no route that takes one can leave it out.
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
  try {
    for (let batch = await reading.parts.next(); batch.length > 0;) {
      for (const { head, content } of batch) {
        await onPart(head, content);
        // What is left of it is thrown away.
        while ((await content.next()).length > 0);
      }
      batch = await reading.parts.next();
    }
  } catch (error) {
    throw reading.stop(error);
  }
}

/** The content of a part that is no file, whole: at most `bytesMax` bytes. */
export async function readPart(content: ByteSource, bytesMax: number): Promise<Buffer> {
  const bytes = new GatheredBytes();
  for (let batch = await content.next(); batch.length > 0; batch = await content.next()) {
    for (const chunk of batch) bytes.add(chunk);
    if (bytes.length > bytesMax) throw tooLarge('A text part', bytesMax);
  }
  return bytes.take();
}

/** RFC 2046 §5.1.1: 1 to 70 characters of a short list, the last of them no blank. */
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

/** Parts of one body: each opens a file, and is stored or removed with the others. */
const partsMax = 1_000;
/** One write of 1 MiB costs two thirds of sixteen writes of 64 KiB. */
const batchBytesMax = 1024 * 1024;
/** Tiny chunks are counted too: each costs memory beside its bytes. */
const batchChunksMax = 256;

/** One body on its way: source → guard → busboy → `parts`. */
class MultipartReading implements BodySink {
  readonly parts: Batches<Part>;
  readonly #source: BodyFlow;
  readonly #rules: MultipartRules;
  readonly #guard: MultipartGuard;
  readonly #busboy: Busboy;
  /** What the announced parts say of themselves, until busboy hands them out. */
  readonly #heads: PartHead[] = [];
  /** Of the part that arrives. Those before it have arrived whole. */
  #content: Batches<Buffer> | undefined;
  #bodyBytes = 0;
  #delivered = 0;
  #failure: Error | undefined;

  constructor(request: HttpRequest, boundary: string, rules: MultipartRules) {
    this.#rules = rules;
    // No more is taken while a part waits.
    this.parts = new Batches({ countMax: 1, bytesMax: Infinity, onTaken: this.#resume });
    this.#busboy = createBusboy({
      headers: { 'content-type': `multipart/form-data; boundary=${busboyBoundary}` },
      // `drain` comes after each write.
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
    this.#source = request.streamBody(this);
  }

  /** Ends it for this reason; gives the first one where it has ended before. */
  stop(error: unknown): Error {
    if (this.#failure !== undefined) return this.#failure;
    this.#failure = error instanceof Error ? error : new Error('a part was refused');
    this.#source.leave();
    this.#content?.fail(this.#failure);
    this.parts.fail(this.#failure);
    return this.#failure;
  }

  take(chunk: Buffer): void {
    try {
      this.#bodyBytes += chunk.length;
      const { uploadBytesMax } = this.#rules;
      if (this.#bodyBytes > uploadBytesMax) throw tooLarge('The multipart body', uploadBytesMax);
      this.#guard.push(chunk);
      if (this.#failure === undefined && this.#mustWait()) this.#source.pause();
    } catch (error) {
      this.stop(error);
    }
  }

  end(): void {
    try {
      this.#guard.end();
      this.#busboy.end();
    } catch (error) {
      this.stop(error);
    }
  }

  /** The connection broke: there is no client to answer, but the parts must be released. */
  cut(): void {
    this.stop(new ClientGone('The request ended early.'));
  }

  readonly #resume = (): void => {
    if (this.#failure === undefined && !this.#mustWait()) this.#source.resume();
  };

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

  /** What busboy gives must be the part that was announced. */
  #deliver(name: string, stream: Readable): void {
    const head = this.#heads.shift();
    this.#delivered += 1;
    if (head === undefined || name !== String(this.#delivered)) this.#refuse();
    const content = new Batches<Buffer>({
      countMax: batchChunksMax,
      bytesMax: batchBytesMax,
      onTaken: this.#resume,
    });
    // Never paused: the source is, as soon as the batch is full.
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

  /** busboy's own messages stay here. */
  #refuse(): void {
    this.stop(invalidMultipart('a part cannot be read'));
  }
}
