/** Multipart bodies as clients write them, right and wrong, and what is read of them. */

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import type { HttpRequest } from '../../dist/http/message.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import type { PartHead } from '../../dist/http/multipart/headers.js';
import { ClientGone } from '../../dist/http/server/body.js';
import { readMultipart } from '../../dist/http/multipart/read.js';
import { withCode } from './errors.ts';

export interface SentPart {
  /** Header lines without the last line end. */
  readonly head: string;
  readonly content: Buffer | string;
}

export const boundary = 'frontier-7MA4YWxk';

export const multipartType = `multipart/form-data; boundary=${boundary}`;

/** A part with a name and, where given, a file name and a media type. */
export function part(
  name: string,
  content: Buffer | string,
  more: { readonly fileName?: string; readonly type?: string } = {},
): SentPart {
  const { fileName, type } = more;
  const file = fileName === undefined ? '' : `; filename="${fileName}"`;
  const line = type === undefined ? '' : `\r\nContent-Type: ${type}`;
  return { head: `Content-Disposition: form-data; name="${name}"${file}${line}`, content };
}

export function multipartBody(parts: readonly SentPart[]): Buffer {
  const pieces = parts.map(({ head, content }) =>
    Buffer.concat([
      Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
      Buffer.from(content),
      Buffer.from('\r\n'),
    ]),
  );
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}

export const limits = {
  uploadBytesMax: 1 << 26,
  allowedOrigins: [],
  publicUrl: '',
};

export interface ReadPart extends PartHead {
  readonly bytes: Buffer;
}

/** Chunks of a stream, as those of a request come. */
function readChunk(source: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const detach = (): void => {
      source.pause().off('data', give).off('end', end).off('error', fail).off('close', fail);
    };
    const give = (chunk: Buffer): void => {
      detach();
      resolve(chunk);
    };
    const end = (): void => give(Buffer.alloc(0));
    const fail = (): void => {
      detach();
      reject(new ClientGone('cut'));
    };
    if (source.readableEnded) end();
    else if (source.destroyed) fail();
    else source.on('data', give).on('end', end).on('error', fail).on('close', fail).resume();
  });
}

export function toRequest(source: Readable, headers: Record<string, string> = {}): HttpRequest {
  const all = new Map(Object.entries({ 'content-type': multipartType, ...headers }));
  const used: Pick<HttpRequest, 'host' | 'header' | 'readChunk' | 'reservation'> = {
    host: '',
    header: (name) => all.get(name),
    readChunk: () => readChunk(source),
    reservation: new MemoryPool(1e9).open(),
  };
  return used as HttpRequest;
}

/** What the store of files may give back: nothing else is in the memory of this chunk. */
function fillsItsMemory(chunk: Buffer): boolean {
  return chunk.byteLength === chunk.buffer.byteLength;
}

/** Spoils the memory that may be given back: what else needed that would come out wrong. */
export async function readBytes(content: AsyncIterable<readonly Buffer[]>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const batch of content) {
    for (const chunk of batch) {
      chunks.push(Buffer.from(chunk));
      if (fillsItsMemory(chunk)) new Uint8Array(chunk.buffer).fill(0xaa);
    }
  }
  return Buffer.concat(chunks);
}

/** The same bytes in memory of their own, as they come from a socket. */
function withOwnMemory(bytes: Buffer): Buffer {
  return Buffer.from(Uint8Array.from(bytes).buffer);
}

export async function readParts(
  chunks: readonly Buffer[],
  options: { readonly limits?: Partial<typeof limits>; readonly type?: string } = {},
): Promise<ReadPart[]> {
  const source = Readable.from(chunks.map(withOwnMemory), { objectMode: false });
  const headers = options.type === undefined ? {} : { 'content-type': options.type };
  const found: ReadPart[] = [];
  try {
    const request = toRequest(source, headers);
    await readMultipart(request, { ...limits, ...options.limits }, async (head, content) => {
      found.push({ ...head, bytes: await readBytes(content) });
    });
  } finally {
    for (const event of ['data', 'error', 'close'])
      assert.equal(source.listenerCount(event), 0, event);
  }
  return found;
}

export const isInvalid = withCode('invalid_multipart');
export const isTooLarge = withCode('content_too_large');

/** One part with this header block, between two good ones. */
export function withHead(head: string): Buffer {
  return multipartBody([part('a', '1'), { head, content: 'x' }, part('b', '2')]);
}

/** Cuts `body` at these places. */
export function cut(body: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.toSorted((a, b) => a - b), body.length];
  return sorted.slice(1).map((end, index) => body.subarray(sorted[index], end));
}
