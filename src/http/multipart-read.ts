/**
 * Reads a multipart/form-data body part by part, each a stream of raw bytes (Spec §4.4, §2.7).
 *
 * `multipart-frames.ts` finds the parts, `multipart-head.ts` reads what they say of themselves,
 * and busboy turns them into streams. busboy is given the parts in a form of our own: a boundary
 * that no client knows and one fixed kind of header block, so that it never skips a part, never
 * decodes one, and never sees text of a client where it looks for structure.
 */

import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { AppError } from '../errors.ts';
import { ClientGone } from './body.ts';
import { parseMediaType } from './media-type.ts';
import type { HttpRequest } from './message.ts';
import { MultipartFrames, type FrameSink } from './multipart-frames.ts';
import { invalidMultipart, parsePartHead, type PartHead } from './multipart-head.ts';

export type { PartHead } from './multipart-head.ts';

export interface MultipartLimits {
  /** The whole body. */
  readonly uploadBytesMax: number;
  /** The content of one part. */
  readonly fileBytesMax: number;
  readonly uploadPartsMax: number;
}

/**
 * Is given one part after the other. The next part comes when the promise is settled; content
 * that was not read is then thrown away. A rejection ends the reading.
 */
export type PartReader = (part: PartHead, content: Readable) => Promise<void>;

/**
 * Reads all parts. Rejects with `unsupported_media_type`, `invalid_multipart`,
 * `content_too_large`, ClientGone, or with what `onPart` rejected with; by then no part is being
 * read and nothing listens to the request any more.
 */
export async function readMultipart(
  request: HttpRequest,
  limits: MultipartLimits,
  onPart: PartReader,
): Promise<void> {
  const boundary = findBoundary(request.header('content-type'));
  if (Number(request.header('content-length')) > limits.uploadBytesMax) {
    throw tooLarge('The multipart body', limits.uploadBytesMax);
  }
  await new Promise<void>((resolve, reject) => {
    const settle = (error?: Error): void => {
      if (error === undefined) resolve();
      else reject(error);
    };
    new MultipartReading(request.streamBody(), { boundary, limits, onPart, settle }).start();
  });
}

/** The content of a text part: at most `bytesMax` bytes of UTF-8. */
export async function readPartText(content: Readable, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of content as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bytesMax) throw tooLarge('A text part', bytesMax);
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks, size);
  if (!isUtf8(bytes)) throw invalidMultipart('a text part is not UTF-8');
  return bytes.toString('utf8');
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

/**
 * What busboy looks for. Long, because its search moves on by the length of what it looks for:
 * with 240 characters it costs little beside receiving.
 */
const innerBoundary = randomBytes(120).toString('hex');
const innerDelimiter = Buffer.from(`\r\n--${innerBoundary}`);
const innerClose = Buffer.from('--\r\n');
/** Bytes that may wait inside busboy for a slow reader before the request is paused. */
const waitingBytesMax = 128 * 1024;

interface Part {
  readonly head: PartHead;
  readonly content: Readable;
}

interface ReadingOptions {
  readonly boundary: string;
  readonly limits: MultipartLimits;
  readonly onPart: PartReader;
  readonly settle: (error?: Error) => void;
}

/** One body on its way. It settles once, whatever happens in whatever order. */
class MultipartReading implements FrameSink {
  readonly #source: Readable;
  readonly #options: ReadingOptions;
  readonly #frames: MultipartFrames;
  readonly #parser: busboy.Busboy;
  /** Heads of parts that busboy has not announced yet. */
  readonly #heads: PartHead[] = [];
  /** Parts that wait until the ones before them are read: those of one chunk, at most. */
  readonly #waiting: Part[] = [];
  #current: Part | undefined;
  /** Settled while no part is being read. */
  #running: Promise<void> = Promise.resolve();
  #bodyBytes = 0;
  #partBytes = 0;
  #parts = 0;
  #parsed = false;
  #failed = false;

  constructor(source: Readable, options: ReadingOptions) {
    this.#source = source;
    this.#options = options;
    this.#frames = new MultipartFrames(options.boundary, this);
    this.#parser = busboy({
      headers: { 'content-type': `multipart/form-data; boundary=${innerBoundary}` },
      highWaterMark: waitingBytesMax,
      preservePath: true,
    });
  }

  start(): void {
    this.#parser
      .on('file', (_name, content) => this.#announce(content))
      .on('drain', () => this.#resume())
      .on('finish', () => {
        this.#parsed = true;
        this.#settleWhenDone();
      })
      .on('error', this.#fail);
    this.#source
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onCut)
      .on('close', this.#onCut);
  }

  readonly #onData = (chunk: Buffer): void => {
    try {
      this.#bodyBytes += chunk.length;
      const { uploadBytesMax } = this.#options.limits;
      if (this.#bodyBytes > uploadBytesMax) throw tooLarge('The multipart body', uploadBytesMax);
      this.#frames.push(chunk);
      if (this.#mustWait()) this.#source.pause();
    } catch (error) {
      this.#fail(error);
    }
  };

  readonly #onEnd = (): void => {
    try {
      this.#detach();
      this.#frames.end();
      // A body without any part closes at once.
      if (this.#parts === 0) this.#parser.write(innerDelimiter);
      this.#parser.end(innerClose);
    } catch (error) {
      this.#fail(error);
    }
  };

  /** The connection broke: there is nobody to answer, but the parts must be let go. */
  readonly #onCut = (): void => this.#fail(new ClientGone('The request ended early.'));

  head(block: Buffer): void {
    const { uploadPartsMax } = this.#options.limits;
    this.#parts += 1;
    if (this.#parts > uploadPartsMax) {
      throw new AppError('content_too_large', `There are more than ${uploadPartsMax} parts.`);
    }
    this.#partBytes = 0;
    this.#heads.push(parsePartHead(block));
    if (this.#parts === 1) this.#parser.write(innerDelimiter);
    const name = `p${this.#parts}`;
    this.#parser.write(
      `\r\nContent-Disposition: form-data; name="${name}"; filename="${name}"\r\n` +
        'Content-Type: application/octet-stream\r\n\r\n',
    );
  }

  content(bytes: Buffer): void {
    this.#partBytes += bytes.length;
    const { fileBytesMax } = this.#options.limits;
    if (this.#partBytes > fileBytesMax) throw tooLarge('A part', fileBytesMax);
    this.#parser.write(bytes);
  }

  partEnd(): void {
    this.#parser.write(innerDelimiter);
  }

  #announce(content: Readable): void {
    // Every stream has somebody who hears of its end, also when nobody reads it any more.
    content.on('error', ignore);
    const head = this.#heads.shift();
    if (head === undefined || this.#failed) {
      content.destroy();
      return;
    }
    this.#waiting.push({ head, content });
    if (this.#current === undefined) this.#running = this.#readParts();
  }

  /** Never rejects: a failure goes through `#fail`. */
  async #readParts(): Promise<void> {
    try {
      for (let part = this.#waiting.shift(); part !== undefined; part = this.#waiting.shift()) {
        this.#current = part;
        this.#resume();
        await this.#options.onPart(part.head, part.content);
        await drained(part.content);
      }
      this.#current = undefined;
      this.#settleWhenDone();
    } catch (error) {
      this.#fail(error);
    }
  }

  #mustWait(): boolean {
    return this.#parser.writableNeedDrain || this.#waiting.length > 0;
  }

  #resume(): void {
    if (!this.#failed && !this.#mustWait() && this.#source.isPaused()) this.#source.resume();
  }

  #settleWhenDone(): void {
    if (this.#parsed && this.#current === undefined && !this.#failed) this.#options.settle();
  }

  readonly #fail = (error: unknown): void => {
    if (this.#failed) return;
    this.#failed = true;
    this.#detach();
    // What still comes is thrown away: a short rest must not block the connection.
    this.#source.resume();
    const reason = error instanceof Error ? error : new Error('a part was refused');
    for (const { content } of this.#waiting.splice(0)) content.destroy(reason);
    this.#current?.content.destroy(reason);
    this.#parser.destroy();
    void this.#settleAfterParts(reason);
  };

  /** The part in hand may be what has just failed: it is over when its promise is settled. */
  async #settleAfterParts(reason: Error): Promise<void> {
    await this.#running;
    this.#options.settle(reason);
  }

  #detach(): void {
    this.#source
      .off('data', this.#onData)
      .off('end', this.#onEnd)
      .off('error', this.#onCut)
      .off('close', this.#onCut);
  }
}

/** Throws away what is left of a part; rejects where it can never end. */
async function drained(content: Readable): Promise<void> {
  if (content.readableEnded) return;
  if (content.destroyed) throw new Error('a part was destroyed before its end');
  content.resume();
  await new Promise<void>((resolve, reject) => {
    content.on('end', resolve).on('error', reject).on('close', resolve);
  });
}

function ignore(): void {
  // It is told through the reading.
}
