/**
 * The uploaded files of one run: they lie in the folder of the run under names made here, and the
 * names that clients gave are in an index in memory only. durable-uploads.ts has the other kind.
 */

import { join } from 'node:path';
import { AppError } from '../../errors.ts';
import {
  beginUpload,
  createFileWriter,
  readContent,
  removeFiles,
  type WriteFile,
} from './content.ts';
import type { FileOperations } from './operations.ts';
import {
  type Listing,
  type Snapshot,
  stopping,
  tooManyFiles,
  type Upload,
  type Uploads,
  type WrittenFile,
} from '../uploads.ts';
import { createRunFolder, removeDeadFolders, type Run } from './run-folder.ts';

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

interface Version extends WrittenFile {
  /** Snapshots that hold it. */
  readers: number;
  /** No longer in the index: removed when the last reader is done. */
  replaced: boolean;
}

/** Files that could not be removed; beyond, no more are taken. */
const leftoversMax = 1_000;
/** How many of them the end of an upload tries again. */
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
