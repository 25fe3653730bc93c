/**
 * The port of the index of stored files, which maps names to files on disk (Spec §4.4, R18), and
 * the index in memory of one run. A method is one atomic operation, as in store.ts; each throws
 * `unavailable` if the database does not answer.
 */

import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Changed, Once, Repeated, RunOnce } from './once.ts';

/** A file that was written completely, and never changes. */
export interface StoredFile {
  readonly storedName: string;
  /** The file name in the folder of the store. */
  readonly temporaryName: string;
  readonly size: number;
}

/** A stored file with its place in the order of the list. */
export interface ListedFile extends StoredFile {
  /** A positive integer, which no other file gets, also when this one is removed. */
  readonly place: number;
}

/** What remains on disk of a file that was replaced. */
export type ReplacedFile = Pick<StoredFile, 'temporaryName' | 'size'>;

export interface FileIndex {
  /**
   * Lists all files, or only the file of this name, in the order in which their names were first
   * stored: a replacement keeps the position (R2).
   */
  list(storedName?: string): MaybePromise<readonly ListedFile[]>;
  /** Lists up to `limit` files after a place, in the same order. */
  page(after: number, limit: number): MaybePromise<readonly ListedFile[]>;
  /**
   * Stores all files at one moment; each replaces the file of its name. The stored names differ.
   * Returns what was replaced, or that the same was done before (R40). Throws `storage_full` if
   * more than `filesMax` files or `bytesMax` bytes would be stored; then nothing changes.
   */
  commit(
    files: readonly StoredFile[],
    options?: CommitOptions,
  ): MaybePromise<readonly ReplacedFile[] | Repeated>;
  /** False if this version of the file is not listed (any more). */
  remove(file: StoredFile, once?: Once): MaybePromise<Changed>;
}

export interface CommitOptions {
  readonly once?: Once | undefined;
  /** Throws `precondition_failed`, and changes nothing, if one of the names is stored (R45). */
  readonly onlyNew?: boolean;
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

export function nameIsStored(): AppError {
  return new AppError('precondition_failed', 'A file of this name is stored already.');
}

/** The in-memory index of one run's files. */
export function createRunIndex(limits: FileLimits, runOnce: RunOnce): FileIndex {
  // By stored name. A replacement keeps the position (R2), as a Map does.
  const stored = new Map<string, ListedFile>();
  let [bytes, places] = [0, 0];
  return {
    list(storedName) {
      if (storedName === undefined) return [...stored.values()];
      const file = stored.get(storedName);
      return file === undefined ? [] : [file];
    },
    page(after, limit) {
      const listed = [...stored.values()];
      const start = listed.findIndex(({ place }) => place > after);
      return start < 0 ? [] : listed.slice(start, start + limit);
    },
    commit: (files, { once, onlyNew = false } = {}) =>
      runOnce(once, () => {
        const replaced = files.flatMap(({ storedName }) => stored.get(storedName) ?? []);
        if (onlyNew && replaced.length > 0) throw nameIsStored();
        const total = stored.size + files.length - replaced.length;
        const totalBytes = bytes + sizeOf(files) - sizeOf(replaced);
        if (total > limits.filesMax || totalBytes > limits.bytesMax) throw tooManyFiles(limits);
        bytes = totalBytes;
        for (const file of files) {
          const place = stored.get(file.storedName)?.place ?? (places += 1);
          stored.set(file.storedName, { ...file, place });
        }
        return replaced;
      }),
    remove: ({ storedName, temporaryName, size }, once) =>
      runOnce(once, () => {
        if (stored.get(storedName)?.temporaryName !== temporaryName) return false;
        bytes -= size;
        return stored.delete(storedName);
      }),
  };
}
