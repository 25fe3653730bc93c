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
import { createFileWriter, readContent, removeFiles, type WriteFile } from './file-content.ts';
import type { FileOperations } from './file-operations.ts';
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

interface Version extends WrittenFile {
  /** Snapshots that hold it. */
  readers: number;
  /** No longer in the index: removed when the last reader is done. */
  replaced: boolean;
}

/** So many files may stay against our will before no more are taken. */
const leftoversMax = 1_000;
/** So many of them does the end of an upload try again. */
const retriesMax = 16;

class FolderUploads implements RunUploads {
  readonly #folder: string;
  readonly #options: UploadsOptions;
  readonly #writeFile: WriteFile;
  /** By stored name. A replaced file keeps its place (R2), as a Map has it. */
  readonly #index = new Map<string, Version>();
  /** Files whose removal failed: some are tried again whenever an upload ends. */
  #leftovers: string[] = [];
  /** Counts the names of files; the folder is this run's alone. */
  #names = 0;
  #closed = false;

  constructor(folder: string, options: UploadsOptions) {
    this.#folder = folder;
    this.#options = options;
    this.#writeFile = createFileWriter({
      folder,
      files: options.files,
      checkOpen: () => this.#checkOpen(),
    });
  }

  begin(): Upload {
    return beginUpload({
      createName: () => this.#createName(),
      writeFile: this.#writeFile,
      commit: (files, uncommitted) => this.#commit(files, uncommitted),
      remove: (names) => this.#remove([...names, ...this.#leftovers.splice(0, retriesMax)]),
    });
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

  #createName(): string {
    this.#checkOpen();
    // The end of this upload tries some again.
    if (this.#leftovers.length >= leftoversMax) {
      throw new AppError('storage_full', 'Files that were replaced cannot be removed.');
    }
    this.#names += 1;
    return `${this.#names}.upload`;
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
    const { left } = await removeFiles(this.#options.files, this.#folder, names);
    if (!this.#closed) this.#leftovers.push(...left);
  }

  #checkOpen(): void {
    if (this.#closed) throw stopping();
  }
}

/** What a store of uploads that has been closed throws. */
export function stopping(): AppError {
  return new AppError('draining', 'The service is stopping.', { close: true });
}

export function tooManyFiles(storedFilesMax: number): AppError {
  return new AppError('storage_full', `No more than ${storedFilesMax} files can be kept.`);
}
