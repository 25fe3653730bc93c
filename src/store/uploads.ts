/**
 * The store of uploaded files (Spec §4.4, R18): a request's files become visible together or not
 * at all, and who downloads a file gets one version of it whole. In the one that is here, files lie
 * in the folder of the run under names made here, and the names of clients live in an index in
 * memory only; durable-uploads.ts has the other, for a durable store and a folder of its own.
 */

import { join } from 'node:path';
import type { ByteSource } from '../byte-source.ts';
import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { codeOf, type FileOperations, toAppError } from './file-operations.ts';
import { createMemoryRelease } from './memory-release.ts';
import { createRunFolder, removeDeadFolders, type Run } from './upload-folder.ts';

/** A file that has arrived whole, and that nobody else can see before it is committed. */
export interface WrittenFile {
  readonly storedName: string;
  /** The name of the file in the folder of the store. */
  readonly temporaryName: string;
  readonly size: number;
}

/** The files of one request, on their way into the store. Always ends with `close()`. */
export interface Upload {
  /**
   * Writes one file while it arrives. Throws `storage_full` where the disk is, `overloaded`
   * where too many files are open, and the error of `content` where that fails.
   */
  write(storedName: string, content: ByteSource): Promise<WrittenFile>;
  /**
   * Makes these files visible, all at one moment, each in place of the one of the same name.
   * Throws `storage_full` where more files than `storedFilesMax` would be kept.
   */
  commit(files: readonly WrittenFile[]): Promise<void>;
  /** Removes what was written and not committed. Never rejects. */
  close(): Promise<void>;
}

/** The stored files of one moment, in the order in which they came (R2). */
export interface Snapshot {
  readonly files: readonly WrittenFile[];
  /** The bytes of one of the files. Throws where they are not there as they were written. */
  read(file: WrittenFile): AsyncGenerator<Buffer, void, undefined>;
  /** Lets go of the files; those that were replaced meanwhile are removed. Never rejects. */
  release(): Promise<void>;
}

/** What is stored, ready to be read. */
export interface Listing {
  /** Holds the files until its `release()`. Never throws. */
  open(): Snapshot;
}

export interface Uploads {
  begin(): Upload;
  /**
   * Holds nothing yet: a listing that nobody opens needs no end. Throws `overloaded` where a
   * database has the index and does not answer.
   */
  list(): MaybePromise<Listing>;
  /** What is on its way then fails with `draining`. */
  close(): Promise<void>;
}

/** Those of one run: `close()` removes its folder. */
export interface RunUploads extends Uploads {
  snapshot(): Snapshot;
}

export interface UploadsOptions {
  /** Where the folder of this run is made. */
  readonly directory: string;
  readonly run: Run;
  readonly storedFilesMax: number;
  readonly files: FileOperations;
}

/** Removes what dead runs left, and makes the folder of this one. */
export async function createUploads(options: UploadsOptions): Promise<RunUploads> {
  const { directory, run, files } = options;
  await removeDeadFolders(directory, run, files);
  return new FolderUploads(await createRunFolder(directory, run, files), options);
}

/** One read from disk; the download has no more than two of them in memory. */
const readBytesMax = 256 * 1024;

interface Version extends WrittenFile {
  /** Snapshots that hold it. */
  readers: number;
  /** No longer in the index: removed when the last reader is done. */
  replaced: boolean;
}

class FolderUploads implements RunUploads {
  readonly #folder: string;
  readonly #options: UploadsOptions;
  readonly #writeContent: WriteContent;
  /** By stored name. A replaced file keeps its place (R2), as a Map has it. */
  readonly #index = new Map<string, Version>();
  /** Files whose removal failed: tried again whenever an upload ends. */
  #leftovers: string[] = [];
  /** Counts the names of files; the folder is this run's alone. */
  #names = 0;
  #closed = false;

  constructor(folder: string, options: UploadsOptions) {
    this.#folder = folder;
    this.#options = options;
    this.#writeContent = createContentWriter(options.files);
  }

  begin(): Upload {
    const uncommitted = new Set<string>();
    return {
      write: (storedName, content) => this.#write(storedName, content, uncommitted),
      commit: (files) => this.#commit(files, uncommitted),
      close: async () => {
        const names = [...uncommitted, ...this.#leftovers.splice(0)];
        uncommitted.clear();
        await this.#remove(names);
      },
    };
  }

  /** Of the moment in which it is opened. */
  list(): Listing {
    return { open: () => this.snapshot() };
  }

  snapshot(): Snapshot {
    const { files } = this.#options;
    const versions = [...this.#index.values()];
    for (const version of versions) version.readers += 1;
    let released = false;
    return {
      files: versions,
      read: (file) => readContent(files, join(this.#folder, file.temporaryName), file.size),
      release: async () => {
        if (released) return;
        released = true;
        for (const version of versions) version.readers -= 1;
        await this.#removeUnread(versions);
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#index.clear();
    await this.#options.files.removeFolder(this.#folder);
  }

  async #write(
    storedName: string,
    content: ByteSource,
    uncommitted: Set<string>,
  ): Promise<WrittenFile> {
    this.#checkOpen();
    this.#names += 1;
    const temporaryName = `${this.#names}.upload`;
    uncommitted.add(temporaryName);
    try {
      const path = join(this.#folder, temporaryName);
      const size = await this.#writeContent(path, content);
      return { storedName, temporaryName, size };
    } catch (error) {
      this.#checkOpen();
      throw toAppError(error);
    }
  }

  async #commit(files: readonly WrittenFile[], uncommitted: Set<string>): Promise<void> {
    this.#checkOpen();
    const added = new Set(files.map((file) => file.storedName));
    const { storedFilesMax } = this.#options;
    const count = [...added].filter((name) => !this.#index.has(name)).length;
    if (this.#index.size + count > storedFilesMax) {
      throw tooManyFiles(storedFilesMax);
    }
    const replaced: Version[] = [];
    for (const file of files) {
      const old = this.#index.get(file.storedName);
      if (old !== undefined) {
        old.replaced = true;
        replaced.push(old);
      }
      uncommitted.delete(file.temporaryName);
      this.#index.set(file.storedName, { ...file, readers: 0, replaced: false });
    }
    await this.#removeUnread(replaced);
  }

  async #removeUnread(versions: readonly Version[]): Promise<void> {
    const over = versions.filter((version) => version.replaced && version.readers === 0);
    await this.#remove(over.map((version) => version.temporaryName));
  }

  /** Never rejects: what cannot be removed now is tried again later. */
  async #remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      try {
        await this.#options.files.remove(join(this.#folder, name));
      } catch (error) {
        if (codeOf(error) !== 'ENOENT' && !this.#closed) this.#leftovers.push(name);
      }
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw new AppError('draining', 'The service is stopping.', { close: true });
  }
}

export function tooManyFiles(storedFilesMax: number): AppError {
  return new AppError('storage_full', `No more than ${storedFilesMax} files can be kept.`);
}

/** Makes a file and writes `content` into it while it arrives; gives its size. */
export type WriteContent = (path: string, content: ByteSource) => Promise<number>;

export function createContentWriter(files: FileOperations): WriteContent {
  const releaseMemory = createMemoryRelease();
  return async (path, content) => {
    let size = 0;
    const descriptor = await files.create(path);
    try {
      for (let batch = await content.next(); batch.length > 0; batch = await content.next()) {
        size += await writeWhole(files, descriptor, batch);
        releaseMemory(batch);
      }
      if (files.sync !== undefined) await files.sync(descriptor);
    } finally {
      await files.close(descriptor);
    }
    return size;
  };
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
