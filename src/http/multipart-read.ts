/**
 * Reads a multipart/form-data body part by part, each as raw bytes (Spec §4.4, §2.7).
 *
 * `multipart-frames.ts` finds the parts, `multipart-head.ts` reads what they say of themselves,
 * and `part-content.ts` gathers their bytes for whoever reads them.
 */

import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import type { ByteSource } from '../byte-source.ts';
import { AppError } from '../errors.ts';
import { ClientGone } from './body.ts';
import { type OwnOrigins, refuseForeign } from './cross-site.ts';
import { parseMediaType } from './media-type.ts';
import type { HttpRequest } from './message.ts';
import { MultipartFrames, type FrameSink } from './multipart-frames.ts';
import { invalidMultipart, parsePartHead, type PartHead } from './multipart-head.ts';
import { PartContent } from './part-content.ts';

export type { PartHead } from './multipart-head.ts';

export interface MultipartRules extends OwnOrigins {
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
  const body = request.streamBody();
  if (body.destroyed) throw new ClientGone('The request ended early.');
  await new Promise<void>((resolve, reject) => {
    const settle = (error?: Error): void => {
      if (error === undefined) resolve();
      else reject(error);
    };
    new MultipartReading(body, { boundary, limits: rules, onPart, settle }).start();
  });
}

/** The content of a text part: at most `bytesMax` bytes of UTF-8. */
export async function readPartText(content: ByteSource, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for (let batch = await content.next(); batch.length > 0; batch = await content.next()) {
    size = batch.reduce((sum, chunk) => sum + chunk.length, size);
    if (size > bytesMax) throw tooLarge('A text part', bytesMax);
    chunks.push(...batch);
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

interface Part {
  readonly head: PartHead;
  readonly content: PartContent;
}

interface ReadingOptions {
  readonly boundary: string;
  readonly limits: MultipartRules;
  readonly onPart: PartReader;
  readonly settle: (error?: Error) => void;
}

/** One body on its way. It settles once, whatever happens in whatever order. */
class MultipartReading implements FrameSink {
  readonly #source: Readable;
  readonly #options: ReadingOptions;
  readonly #frames: MultipartFrames;
  /** Parts that wait until the ones before them are read: those of one chunk, at most. */
  readonly #waiting: Part[] = [];
  #current: Part | undefined;
  /** The part that arrives: the current one, or the last that waits. */
  #arriving: PartContent | undefined;
  /** Chunks whose memory holds nothing else. */
  readonly #sole = new WeakSet<Buffer>();
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
  }

  start(): void {
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
      const sole = this.#frames.push(chunk);
      if (sole !== undefined) this.#sole.add(sole);
      if (this.#mustWait()) this.#source.pause();
    } catch (error) {
      this.#fail(error);
    }
  };

  readonly #onEnd = (): void => {
    try {
      this.#detach();
      this.#frames.end();
      this.#parsed = true;
      this.#settleWhenDone();
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
    const head = parsePartHead(block);
    this.#arriving = new PartContent({ onTaken: this.#resume, sole: this.#sole });
    this.#waiting.push({ head, content: this.#arriving });
    if (this.#current === undefined) this.#running = this.#readParts();
  }

  content(bytes: Buffer): void {
    this.#partBytes += bytes.length;
    const { fileBytesMax } = this.#options.limits;
    if (this.#partBytes > fileBytesMax) throw tooLarge('A part', fileBytesMax);
    this.#arriving?.push(bytes);
  }

  partEnd(): void {
    this.#arriving?.end();
  }

  /** Never rejects: a failure goes through `#fail`. */
  async #readParts(): Promise<void> {
    try {
      for (let part = this.#waiting.shift(); part !== undefined; part = this.#waiting.shift()) {
        this.#current = part;
        this.#resume();
        await this.#options.onPart(part.head, part.content);
        await skipRest(part.content);
      }
      this.#current = undefined;
      this.#settleWhenDone();
    } catch (error) {
      this.#fail(error);
    }
  }

  #mustWait(): boolean {
    return this.#waiting.length > 0 || this.#arriving?.isFull === true;
  }

  readonly #resume = (): void => {
    if (!this.#failed && !this.#mustWait() && this.#source.isPaused()) this.#source.resume();
  };

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
    for (const { content } of this.#waiting.splice(0)) content.fail(reason);
    this.#current?.content.fail(reason);
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

/** Throws away what is left of a part; rejects where it broke off. */
async function skipRest(content: ByteSource): Promise<void> {
  while ((await content.next()).length > 0);
}
