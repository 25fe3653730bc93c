/**
 * The store of uploaded files (Spec §4.4, R18). Files lie in the folder of the run under names
 * made here; the names of clients live in an index in memory only. A request's files become
 * visible together or not at all, and who downloads a file gets one version of it whole.
 */

import { join } from 'node:path';
import type { ByteSource } from '../byte-source.ts';
import { AppError } from '../errors.ts';
import type { FileOperations } from './file-operations.ts';
import { createMemoryRelease } from './memory-release.ts';
import { createRunFolder, removeDeadFolders, type Run } from './upload-folder.ts';

/** A file that has arrived whole, and that nobody else can see before it is committed. */
export interface WrittenFile {
  readonly storedName: string;
  /** The name of the file in the run's folder. */
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

export interface Uploads {
  begin(): Upload;
  snapshot(): Snapshot;
  /** Removes the folder of the run. What is on its way then fails with `draining`. */
  close(): Promise<void>;
}

export interface UploadsOptions {
  /** Where the folder of this run is made. */
  readonly directory: string;
  readonly run: Run;
  readonly storedFilesMax: number;
  readonly files: FileOperations;
}

/** Removes what dead runs left, and makes the folder of this one. */
export async function createUploads(options: UploadsOptions): Promise<Uploads> {
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

class FolderUploads implements Uploads {
  readonly #folder: string;
  readonly #options: UploadsOptions;
  readonly #releaseMemory = createMemoryRelease();
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

  snapshot(): Snapshot {
    const versions = [...this.#index.values()];
    for (const version of versions) version.readers += 1;
    let released = false;
    return {
      files: versions,
      read: (file) => this.#read(file),
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
      const size = await this.#writeContent(temporaryName, content);
      return { storedName, temporaryName, size };
    } catch (error) {
      this.#checkOpen();
      throw toAppError(error);
    }
  }

  async #writeContent(temporaryName: string, content: ByteSource): Promise<number> {
    const { files } = this.#options;
    let size = 0;
    const descriptor = await files.create(join(this.#folder, temporaryName));
    try {
      for (let batch = await content.next(); batch.length > 0; batch = await content.next()) {
        size += await writeWhole(files, descriptor, batch);
        this.#releaseMemory(batch);
      }
    } finally {
      await files.close(descriptor);
    }
    return size;
  }

  async #commit(files: readonly WrittenFile[], uncommitted: Set<string>): Promise<void> {
    this.#checkOpen();
    const added = new Set(files.map((file) => file.storedName));
    const { storedFilesMax } = this.#options;
    const count = [...added].filter((name) => !this.#index.has(name)).length;
    if (this.#index.size + count > storedFilesMax) {
      throw new AppError('storage_full', `No more than ${storedFilesMax} files can be kept.`);
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

  async *#read(file: WrittenFile): AsyncGenerator<Buffer, void, undefined> {
    const { files } = this.#options;
    const descriptor = await files.open(join(this.#folder, file.temporaryName));
    try {
      let position = 0;
      while (position < file.size) {
        const chunk = Buffer.allocUnsafe(Math.min(readBytesMax, file.size - position));
        const bytes = await files.read(descriptor, chunk, position);
        if (bytes === 0) throw new Error('a stored file is shorter than it was');
        position += bytes;
        yield bytes === chunk.length ? chunk : chunk.subarray(0, bytes);
      }
    } finally {
      await files.close(descriptor);
    }
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

/** What the file system says in its own codes, for those that a client can do something about. */
function toAppError(error: unknown): unknown {
  switch (codeOf(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new AppError('storage_full', 'There is no space left for uploaded files.');
    case 'EMFILE':
    case 'ENFILE':
      return new AppError('overloaded', 'Too many files are open.', { retryAfterSeconds: 1 });
    default:
      return error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
