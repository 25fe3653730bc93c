/** Uploaded files on the disk: written while their content arrives, flushed, and read in pieces. */

import { close, constants, open, read, writev } from 'node:fs';
import { open as openHandle, stat } from 'node:fs/promises';
import type { MessagePort } from 'node:worker_threads';
import { AppError, codeOf, overloaded } from '../../errors.ts';

/** Size of one read from disk. */
const readBytesMax = 64 * 1024;
const noBytes = Buffer.alloc(0);
export const dayMilliseconds = 86_400_000;

interface WriteOptions {
  /** Flushes the file to the disk before it is closed. */
  readonly isSynced: boolean;
  /** The result of `openDrain`. */
  readonly drain: MessagePort;
}

/**
 * Creates a file that only this user can read, and writes `content` to it as it arrives. Returns
 * the size. Throws errors of the file system and of `content`.
 */
export async function writeFile(
  path: string,
  content: AsyncIterable<readonly Buffer[]>,
  { isSynced, drain }: WriteOptions,
): Promise<number> {
  let size = 0;
  const file = await settled<number>((done) => open(path, 'wx', 0o600, done));
  try {
    for await (const batch of content) {
      size += await writeWhole(file, batch);
      releaseMemory(batch, drain);
    }
    if (isSynced) await flush(path, constants.O_RDWR);
  } finally {
    await settled((done) => close(file, done));
  }
  return size;
}

/** If the disk is nearly full, a write may take only a part; the rest is then copied. */
async function writeWhole(file: number, batch: readonly Buffer[]): Promise<number> {
  const size = batch.reduce((sum, chunk) => sum + chunk.length, 0);
  let rest = batch;
  let left = size;
  while (left > 0) {
    const chunks = rest;
    const taken = await settled<number>((done) => writev(file, chunks, done));
    if (taken === 0) throw new Error('the file system wrote nothing and reported no error');
    left -= taken;
    if (left > 0) rest = [Buffer.concat(rest).subarray(taken)];
  }
  return size;
}

/**
 * A port whose other end is closed: the memory of buffers transferred to it is freed at once (HTML
 * Standard, message ports; Node has `ArrayBuffer.prototype.transfer` only since version 21).
 */
export function openDrain(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  return port1;
}

/**
 * Frees memory before garbage collection. V8 counts buffers towards its heap: with a small heap,
 * every 8 MiB of an upload would start a full collection, which takes longer than receiving them.
 */
function releaseMemory(chunks: readonly Buffer[], drain: MessagePort): void {
  // A chunk as long as its ArrayBuffer shares it with no other.
  const owned = chunks.flatMap(({ byteLength, buffer }) =>
    byteLength === buffer.byteLength ? [buffer as ArrayBuffer] : [],
  );
  if (owned.length > 0) drain.postMessage(undefined, owned);
}

export type Content = AsyncGenerator<Buffer, void, undefined>;

/** In bytes; `end` does not belong to it. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Opens a file, and returns the bytes of a range of it, which the caller must read or `return()`.
 * They end with an error if the file is shorter.
 */
export async function openContent(path: string, range: ByteRange): Promise<Content> {
  const content = readContent(path, range);
  // The file is open at the first value. A generator that was never started would not close it.
  await content.next();
  return content;
}

async function* readContent(path: string, { start, end }: ByteRange): Content {
  const file = await settled<number>((done) => open(path, 'r', done));
  try {
    yield noBytes;
    let position = start;
    while (position < end) {
      const chunk = Buffer.allocUnsafe(Math.min(readBytesMax, end - position));
      const at = position;
      const bytes = await settled<number>((done) => read(file, chunk, 0, chunk.length, at, done));
      if (bytes === 0) throw new Error('a stored file is shorter than it was');
      position += bytes;
      yield bytes === chunk.length ? chunk : chunk.subarray(0, bytes);
    }
  } finally {
    await settled((done) => close(file, done));
  }
}

/**
 * Settles with what a function on a descriptor calls back with. File handles, which have promises,
 * take more CPU time.
 */
function settled<T = void>(
  start: (done: (error: Error | null, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => (error === null ? resolve(value as T) : reject(error)));
  });
}

/** True for the names that the store gives. Other files are not touched. */
export function isUpload(name: string): boolean {
  return name.endsWith('.upload');
}

/** True if a file or folder exists and has not changed for a day. */
export async function isDayOld(path: string): Promise<boolean> {
  const found = await stat(path).catch(allow('ENOENT'));
  return found !== undefined && Date.now() - found.mtimeMs > dayMilliseconds;
}

/** Flushes the names of a folder to the disk. Throws if the path is not a folder. */
export function syncFolder(path: string): Promise<void> {
  // Some file systems do not support this, because they need not.
  return flush(path, constants.O_RDONLY | constants.O_DIRECTORY, 'EINVAL', 'ENOTSUP');
}

/** By a handle: Node forbids it for descriptors under `--permission`. */
async function flush(path: string, flags: number, ...allowed: readonly string[]): Promise<void> {
  const handle = await openHandle(path, flags);
  try {
    await handle.sync().catch(allow(...allowed));
  } finally {
    await handle.close();
  }
}

/** Ignores errors with these codes, and throws others. */
export function allow(...codes: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!codes.includes(codeOf(error) ?? '')) throw error;
  };
}

/** Throws an error of the file system as one that a client can react to, if there is one. */
export function throwAppError(error: unknown): never {
  switch (codeOf(error) ?? '') {
    case 'ENOSPC':
    case 'EDQUOT':
      throw new AppError('storage_full', 'There is no space left for uploaded files.');
    case 'EMFILE':
    case 'ENFILE':
      throw overloaded('Too many files are open.');
    default:
      throw error;
  }
}
