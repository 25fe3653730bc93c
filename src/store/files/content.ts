/** Files of the store of uploads: written while their content arrives, read, removed. */

import type { MessagePort } from 'node:worker_threads';
import type { FileOperations } from './operations.ts';

/** Size of one read from disk. */
const readBytesMax = 64 * 1024;
const noBytes = Buffer.alloc(0);

export interface WriteOptions {
  readonly files: FileOperations;
  readonly path: string;
  /** Flushes the file to the disk before it is closed. */
  readonly isSynced: boolean;
  /** The result of `openDrain`. */
  readonly drain: MessagePort;
}

/**
 * Creates a file and writes `content` to it as it arrives. Returns the size. Throws errors of the
 * file system and of `content`.
 */
export async function writeFile(
  content: AsyncIterable<readonly Buffer[]>,
  options: WriteOptions,
): Promise<number> {
  const { files, path, isSynced, drain } = options;
  let size = 0;
  const file = await files.create(path);
  try {
    for await (const batch of content) {
      size += await writeWhole(files, file, batch);
      releaseMemory(batch, drain);
    }
    if (isSynced) await files.sync(path);
  } finally {
    await files.close(file);
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
  const owners = chunks.filter((chunk) => chunk.byteLength === chunk.buffer.byteLength);
  if (owners.length > 0)
    drain.postMessage(
      undefined,
      owners.map(({ buffer }) => buffer as ArrayBuffer),
    );
}

/**
 * Opens a file, and returns its bytes from `start` up to, not including, `end`, which the caller
 * must read or `return()`. They end with an error if the file is shorter.
 */
export async function openContent(
  files: FileOperations,
  path: string,
  range: { readonly start: number; readonly end: number },
): Promise<Content> {
  const content = readContent(files, path, range);
  // The file is open at the first value. A generator that was never started would not close it.
  await content.next();
  return content;
}

export type Content = AsyncGenerator<Buffer, void, undefined>;

async function* readContent(
  files: FileOperations,
  path: string,
  { start, end }: { readonly start: number; readonly end: number },
): Content {
  const file = await files.open(path);
  try {
    yield noBytes;
    let position = start;
    while (position < end) {
      const chunk = Buffer.allocUnsafe(Math.min(readBytesMax, end - position));
      const bytes = await files.read(file, chunk, position);
      if (bytes === 0) throw new Error('a stored file is shorter than it was');
      position += bytes;
      yield bytes === chunk.length ? chunk : chunk.subarray(0, bytes);
    }
  } finally {
    await files.close(file);
  }
}

/** If the disk is nearly full, a write may take only a part; the rest is then copied. */
async function writeWhole(
  files: FileOperations,
  file: number,
  batch: readonly Buffer[],
): Promise<number> {
  const size = batch.reduce((sum, chunk) => sum + chunk.length, 0);
  let rest = batch;
  let left = size;
  while (left > 0) {
    const taken = await files.write(file, rest);
    if (taken === 0) throw new Error('the file system wrote nothing and reported no error');
    left -= taken;
    if (left > 0) rest = [Buffer.concat(rest).subarray(taken)];
  }
  return size;
}
