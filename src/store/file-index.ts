/**
 * The port of the index of stored files, which maps names to files on disk (Spec §4.4, R18), and
 * the index in memory of one run. A method is one atomic operation, as in store.ts; each throws
 * `unavailable` if the database does not answer.
 */

import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Once, Repeated, RunOnce } from './once.ts';

/** A file that was written completely, and never changes. */
export interface StoredFile {
  readonly storedName: string;
  /** The file name in the folder of the store. */
  readonly temporaryName: string;
  readonly size: number;
}

/** What remains on disk of a file that was replaced. */
export type ReplacedFile = Pick<StoredFile, 'temporaryName' | 'size'>;

export interface FileIndex {
  /**
   * Lists all files, or only the file of this name, in the order in which their names were first
   * stored: a replacement keeps the position (R2).
   */
  list(storedName?: string): MaybePromise<readonly StoredFile[]>;
  /**
   * Stores all files at one moment; each replaces the file of its name. The stored names differ.
   * Returns what was replaced, or that the same was done before (R40). Throws `storage_full` if
   * more than `filesMax` files or `bytesMax` bytes would be stored; then nothing changes.
   */
  commit(
    files: readonly StoredFile[],
    once?: Once,
  ): MaybePromise<readonly ReplacedFile[] | Repeated>;
  /** Does nothing, also with the key, if the file is not listed. */
  remove(file: StoredFile, once?: Once): MaybePromise<Repeated | undefined>;
}

/** An index in a database. After an error of `commit`, the files may be stored. */
export interface DurableFileIndex extends FileIndex {
  /** Returns the id of the folder with its files; if there is none yet, sets it to `claimed`. */
  folderId(claimed?: string): MaybePromise<string | undefined>;
}

/** Limits for all stored files together. */
export interface FileLimits {
  readonly filesMax: number;
  readonly bytesMax: number;
}

export function sizeOf(files: readonly ReplacedFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

export function tooManyFiles({ filesMax, bytesMax }: FileLimits): AppError {
  const bounds = `${filesMax} files with ${bytesMax} bytes in all`;
  return new AppError('storage_full', `No more than ${bounds} can be stored.`);
}

/** The in-memory index of one run's files. */
export function createRunIndex(limits: FileLimits, runOnce: RunOnce): FileIndex {
  // By stored name. A replacement keeps the position (R2), as a Map does.
  const stored = new Map<string, StoredFile>();
  let bytes = 0;
  return {
    list(storedName) {
      if (storedName === undefined) return [...stored.values()];
      const file = stored.get(storedName);
      return file === undefined ? [] : [file];
    },
    commit: (files, once) =>
      runOnce(once, () => {
        const replaced = files.flatMap(({ storedName }) => stored.get(storedName) ?? []);
        const total = stored.size + files.length - replaced.length;
        const totalBytes = bytes + sizeOf(files) - sizeOf(replaced);
        if (total > limits.filesMax || totalBytes > limits.bytesMax) throw tooManyFiles(limits);
        bytes = totalBytes;
        for (const file of files) stored.set(file.storedName, file);
        return replaced;
      }),
    remove({ storedName, temporaryName, size }, once) {
      const done = runOnce(once, () => {
        if (stored.get(storedName)?.temporaryName !== temporaryName) return false;
        bytes -= size;
        return stored.delete(storedName);
      });
      return typeof done === 'object' ? done : undefined;
    },
  };
}
