/** Files of a store of uploads on the disk: written while they arrive, read, removed. */

import { join } from 'node:path';
import type { ByteSource } from '../../byte-source.ts';
import type { Upload, WrittenFile } from '../uploads.ts';
import { codeOf, type FileOperations, toAppError } from './operations.ts';
import { createMemoryRelease } from './memory-release.ts';

/** One read from disk. */
const readBytesMax = 64 * 1024;

/**
 * Makes the file of this name and writes `content` into it while it arrives; gives its size.
 * Throws `storage_full`, `overloaded`, or the error of `content`.
 */
export type WriteFile = (name: string, content: ByteSource) => Promise<number>;

interface FileWriterOptions {
  readonly folder: string;
  readonly files: FileOperations;
  /** Throws where the store is closed, and its folder perhaps gone: that goes before a failure. */
  readonly checkOpen: () => void;
}

export function createFileWriter({ folder, files, checkOpen }: FileWriterOptions): WriteFile {
  const releaseMemory = createMemoryRelease();
  const write = async (path: string, content: ByteSource): Promise<number> => {
    let size = 0;
    const descriptor = await files.create(path);
    try {
      for (let batch = await content.next(); batch.length > 0; batch = await content.next()) {
        size += await writeWhole(files, descriptor, batch);
        // What fills its memory shares it with nothing.
        releaseMemory(batch.filter((chunk) => chunk.byteLength === chunk.buffer.byteLength));
      }
      if (files.sync !== undefined) await files.sync(descriptor);
    } finally {
      await files.close(descriptor);
    }
    return size;
  };
  return async (name, content) => {
    try {
      return await write(join(folder, name), content);
    } catch (error) {
      checkOpen();
      throw toAppError(error);
    }
  };
}

/** What the two stores of uploads do each in their own way. */
export interface UploadSteps {
  /** A name in the folder of the store, never given before. Throws where no file is taken now. */
  readonly createName: () => string;
  readonly writeFile: WriteFile;
  /** Takes what it commits out of `uncommitted`. */
  readonly commit: (files: readonly WrittenFile[], uncommitted: Set<string>) => Promise<void>;
  /** Never rejects. */
  readonly remove: (names: readonly string[]) => Promise<void>;
}

export function beginUpload(steps: UploadSteps): Upload {
  const uncommitted = new Set<string>();
  return {
    async write(storedName, content) {
      const temporaryName = steps.createName();
      uncommitted.add(temporaryName);
      const size = await steps.writeFile(temporaryName, content);
      return { storedName, temporaryName, size };
    },
    commit: (files) => steps.commit(files, uncommitted),
    async close() {
      const names = [...uncommitted];
      uncommitted.clear();
      await steps.remove(names);
    },
  };
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

/** The bytes of a file of `size` bytes. Throws where they are not there. */
export async function* readContent(
  files: FileOperations,
  path: string,
  size: number,
): AsyncGenerator<Buffer, void, undefined> {
  const descriptor = await files.open(path);
  try {
    let position = 0;
    while (position < size) {
      const chunk = Buffer.allocUnsafe(Math.min(readBytesMax, size - position));
      const bytes = await files.read(descriptor, chunk, position);
      if (bytes === 0) throw new Error('a stored file is shorter than it was');
      position += bytes;
      yield bytes === chunk.length ? chunk : chunk.subarray(0, bytes);
    }
  } finally {
    await files.close(descriptor);
  }
}

/** A disk that is nearly full takes a part of a batch before it says so. */
async function writeWhole(
  files: FileOperations,
  descriptor: number,
  batch: readonly Buffer[],
): Promise<number> {
  const size = batch.reduce((sum, chunk) => sum + chunk.length, 0);
  let rest = batch;
  let left = size;
  while (left > 0) {
    const taken = await files.write(descriptor, rest);
    if (taken === 0) throw new Error('the file system took nothing and gave no reason');
    left -= taken;
    if (left > 0) rest = dropFirst(rest, taken);
  }
  return size;
}

/** The chunks without their first `bytes` bytes. */
function dropFirst(chunks: readonly Buffer[], bytes: number): readonly Buffer[] {
  let skip = bytes;
  const first = chunks.findIndex((chunk) => {
    if (chunk.length > skip) return true;
    skip -= chunk.length;
    return false;
  });
  return chunks.slice(first).map((chunk, index) => (index === 0 ? chunk.subarray(skip) : chunk));
}
