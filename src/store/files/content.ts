/** Files of a store of uploads on the disk: written while they arrive, read, removed. */

import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import type { ByteSource } from '../../byte-source.ts';
import { codeOf, type FileOperations } from './operations.ts';

/** One read from disk. */
const readBytesMax = 64 * 1024;

export interface WriteOptions {
  readonly files: FileOperations;
  readonly path: string;
  /** The file is on the disk before it is closed. */
  readonly isSynced: boolean;
  /** From `openDrain`. */
  readonly drain: MessagePort;
}

/**
 * Makes a file and writes `content` into it while it arrives; gives its size. Throws what the file
 * system does, and the error of `content`.
 */
export async function writeFile(content: ByteSource, options: WriteOptions): Promise<number> {
  const { files, path, isSynced, drain } = options;
  let size = 0;
  const file = await files.create(path);
  try {
    for (let batch = await content.next(); batch.length > 0; batch = await content.next()) {
      size += await writeWhole(files, file, batch);
      releaseMemory(batch, drain);
    }
    if (isSynced) await files.sync(file);
  } finally {
    await files.close(file);
  }
  return size;
}

/**
 * A port whose other end is closed: what is transferred to it has no owner, and its memory is free
 * when the call returns (HTML Standard, message ports; no Node before 21 has
 * `ArrayBuffer.prototype.transfer`).
 */
export function openDrain(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  return port1;
}

/**
 * Gives memory back before the garbage collector finds it. V8 counts the bytes of buffers against
 * its heap: beside a small heap every 8 MiB that pass through an upload would start a collection
 * of all of it, which takes longer than receiving them.
 */
function releaseMemory(chunks: readonly Buffer[], drain: MessagePort): void {
  // What fills its memory shares it with nothing.
  const owners = chunks.filter((chunk) => chunk.byteLength === chunk.buffer.byteLength);
  if (owners.length > 0)
    drain.postMessage(
      undefined,
      owners.map(({ buffer }) => buffer as ArrayBuffer),
    );
}

/** Which of the files are there no more, and which could not be removed. Never rejects. */
export async function removeFiles(
  files: FileOperations,
  folder: string,
  names: readonly string[],
): Promise<{ readonly gone: readonly string[]; readonly left: readonly string[] }> {
  const gone: string[] = [];
  const left: string[] = [];
  for (const name of names) {
    try {
      await files.remove(join(folder, name));
      gone.push(name);
    } catch (error) {
      (codeOf(error) === 'ENOENT' ? gone : left).push(name);
    }
  }
  return { gone, left };
}

/** The bytes of a file from `start` to before `end`. Throws where they are not there. */
export async function* readContent(
  files: FileOperations,
  path: string,
  { start, end }: { readonly start: number; readonly end: number },
): AsyncGenerator<Buffer, void, undefined> {
  const file = await files.open(path);
  try {
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

/** A disk that is nearly full takes a part of a batch before it says so; the rest is copied. */
async function writeWhole(
  files: FileOperations,
  file: FileHandle,
  batch: readonly Buffer[],
): Promise<number> {
  const size = batch.reduce((sum, chunk) => sum + chunk.length, 0);
  let rest = batch;
  let left = size;
  while (left > 0) {
    const taken = await files.write(file, rest);
    if (taken === 0) throw new Error('the file system took nothing and gave no reason');
    left -= taken;
    if (left > 0) rest = [Buffer.concat(rest).subarray(taken)];
  }
  return size;
}
