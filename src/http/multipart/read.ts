/**
 * Reads a multipart/form-data body part by part, as raw bytes (Spec §4.4, §2.7). The guard checks
 * the bytes, busboy separates the parts, and their chunks are batched for the reader.
 */

import type { Readable } from 'node:stream';
import createBusboy, { type Busboy } from 'busboy';
import { AppError } from '../../errors.ts';
import { type Reservation, uncountedBytesMax } from '../../memory-pool.ts';
import { type OwnOrigins, refuseForeign } from '../origins.ts';
import { append, memoryOf, poolIsFull } from '../server/body.ts';

import { parseMediaType } from '../media-type.ts';
import type { HttpRequest } from '../message.ts';
import {
  busboyBoundary,
  invalidMultipart,
  MultipartGuard,
  parsePartHead,
  type PartHead,
} from './guard.ts';

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
  const parts = new Parts(request, boundary, rules);
  for (let part = await parts.next(); part !== undefined; part = await parts.next()) {
    await onPart(part.head, parts.read(part));
  }
}

/**
 * Reads the whole content of a text part, at most `bytesMax` bytes. Reserves the memory that it can
 * take as JSON; throws `overloaded` if there is no room.
 */
export async function readPart(
  content: PartContent,
  bytesMax: number,
  room: Reservation,
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
    if (!room.grow(memoryOf(length) - reserved)) throw poolIsFull();
    reserved = memoryOf(length);
  }
  return space.subarray(0, length);
}

/** RFC 2046 §5.1.1: 1 to 70 characters of a short list; the last one is not a space. */
const boundaryPattern = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;

function findBoundary(contentType: string | undefined): string {
  const type = contentType === undefined ? undefined : parseMediaType(contentType);
  if (type?.essence !== 'multipart/form-data') {
    throw new AppError('unsupported_media_type', 'The body must be multipart/form-data.', {
      headers: ['Accept', 'multipart/form-data'],
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

/** A part that busboy is delivering, and what its reader has not taken yet. */
interface Part {
  readonly head: PartHead;
  chunks: Buffer[];
  bytes: number;
  isWhole: boolean;
}

/** Parts of one body: each opens a file, and all are stored or removed together. */
const partsMax = 1_000;
/** What a part keeps in memory until all are stored, beside the text of its header block. */
const partBytes = 1_024;
/** Writing 1 MiB at once takes two thirds of the time of sixteen writes of 64 KiB. */
const batchBytesMax = 1024 * 1024;
/** Limits tiny chunks: each takes memory in addition to its bytes. */
const batchChunksMax = 256;

/**
 * The parts of one body: body → guard → busboy → part. Nothing is read of the body until a reader
 * asks for more than there is.
 */
class Parts {
  readonly #request: HttpRequest;
  readonly #bodyBytesMax: number;
  readonly #guard: MultipartGuard;
  readonly #busboy: Busboy;
  /** The heads of parts that busboy has not delivered yet. */
  readonly #heads: PartHead[] = [];
  /** The parts that `next` has not returned yet. */
  readonly #parts: Part[] = [];
  #last: Part | undefined;
  #bodyBytes = 0;
  #headBytes = 0;
  #delivered = 0;
  #isOver = false;
  #failure: Error | undefined;
  #wake = (): void => undefined;

  constructor(request: HttpRequest, boundary: string, { uploadBytesMax }: MultipartRules) {
    this.#request = request;
    this.#bodyBytesMax = uploadBytesMax;
    this.#busboy = createBusboy({
      headers: { 'content-type': `multipart/form-data; boundary=${busboyBoundary}` },
    });
    this.#busboy
      .on('file', (name, stream) => this.#deliver(name, stream))
      .on('drain', () => this.#wake())
      .on('finish', () => this.#wake())
      .on('error', () => {
        this.#refuse();
        this.#wake();
      });
    this.#guard = new MultipartGuard(boundary, {
      head: (block) => this.#announce(block),
      write: (bytes) => this.#busboy.write(bytes),
    });
  }

  /** Discards what is left of the last part, and returns the next one; undefined at the end. */
  async next(): Promise<Part | undefined> {
    for (let last = this.#last; last?.isWhole === false; last = this.#last) {
      last.chunks = [];
      last.bytes = 0;
      await this.#advance();
    }
    while (this.#parts.length === 0 && !this.#isOver) await this.#advance();
    this.#last = this.#parts.shift();
    return this.#last;
  }

  async *read(part: Part): AsyncGenerator<readonly Buffer[], void, undefined> {
    const { room } = this.#request;
    let counted = 0;
    while (!part.isWhole || part.chunks.length > 0) {
      // Without room, less is read at once.
      const isFull = part.chunks.length >= batchChunksMax || part.bytes >= batchBytesMax;
      if (!part.isWhole && !isFull && (part.bytes === 0 || room.hasRoom(batchBytesMax))) {
        await this.#advance();
        // The last batch is not in use any more.
        room.set(room.bytes + part.bytes - counted);
        counted = part.bytes;
        continue;
      }
      const { chunks } = part;
      part.chunks = [];
      part.bytes = 0;
      yield chunks;
    }
    room.set(room.bytes - counted);
  }

  /** Passes on what has arrived of the body, and waits if nothing has. */
  async #advance(): Promise<void> {
    try {
      if (this.#isOver) this.#refuse();
      if (this.#failure === undefined) await this.#passOn(await this.#request.readChunk());
    } catch (error) {
      this.#failure ??= error as Error; // nothing else is thrown
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #passOn(chunk: Buffer): Promise<void> {
    const busboy = this.#busboy;
    if (chunk.length > 0) {
      this.#bodyBytes += chunk.length;
      if (this.#bodyBytes > this.#bodyBytesMax) {
        throw tooLarge('The multipart body', this.#bodyBytesMax);
      }
      this.#guard.push(chunk);
      // busboy waits for the streams of parts, which flow from the next tick on.
      while (busboy.writableLength > 0 && this.#failure === undefined) await this.#signal();
      return;
    }
    this.#guard.end();
    busboy.end();
    while (!busboy.writableFinished && this.#failure === undefined) await this.#signal();
    this.#isOver = true;
    if (this.#delivered !== this.#guard.parts) this.#refuse();
  }

  /** Resolves when busboy has finished, takes more, or has failed. */
  #signal(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #announce(block: Buffer): void {
    if (this.#guard.parts === partsMax) {
      throw new AppError('content_too_large', `There are more than ${partsMax} parts.`);
    }
    const bytes = 2 * block.length + partBytes;
    this.#headBytes += bytes;
    if (this.#headBytes > uncountedBytesMax && !this.#request.room.grow(bytes)) throw poolIsFull();
    this.#heads.push(parsePartHead(block));
  }

  /** The part from busboy must be the next one announced. */
  #deliver(name: string, stream: Readable): void {
    const head = this.#heads.shift();
    this.#delivered += 1;
    if (head === undefined || name !== String(this.#delivered)) {
      this.#refuse();
      return;
    }
    const part: Part = { head, chunks: [], bytes: 0, isWhole: false };
    stream
      .on('data', (chunk: Buffer) => {
        part.chunks.push(chunk);
        part.bytes += chunk.length;
      })
      .on('end', () => (part.isWhole = true))
      .on('error', () => this.#refuse());
    this.#parts.push(part);
  }

  /** Messages of busboy are not shown to clients. */
  #refuse(): void {
    this.#failure ??= invalidMultipart('a part cannot be read');
  }
}
