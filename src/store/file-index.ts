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
  /** The id of the account that stored it (R36); null if none did, or before owners were kept. */
  readonly owner: string | null;
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
  /** The id of the account that stores the files. */
  readonly owner?: string | undefined;
  /** Called in the commit with the files that it replaces; if it throws, nothing changes. */
  readonly check?: ((replaced: readonly ListedFile[]) => void) | undefined;
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

function sizeOf(files: readonly ReplacedFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** Throws `storage_full` if a commit leaves more than the limits, of `stored` files before it. */
export function checkLimits(
  { filesMax, bytesMax }: FileLimits,
  stored: { readonly count: number; readonly bytes: number },
  { files, replaced }: Readonly<Record<'files' | 'replaced', readonly ReplacedFile[]>>,
): void {
  const count = stored.count + files.length - replaced.length;
  const bytes = stored.bytes + sizeOf(files) - sizeOf(replaced);
  if (count <= filesMax && bytes <= bytesMax) return;
  const bounds = `${filesMax} files with ${bytesMax} bytes in all`;
  throw new AppError('storage_full', `No more than ${bounds} can be stored.`);
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
      const page: ListedFile[] = [];
      for (const file of stored.values()) {
        if (file.place > after && page.push(file) >= limit) break;
      }
      return page;
    },
    commit: (files, { once, owner = null, check } = {}) =>
      runOnce(once, () => {
        const replaced = files.flatMap(({ storedName }) => stored.get(storedName) ?? []);
        check?.(replaced);
        checkLimits(limits, { count: stored.size, bytes }, { files, replaced });
        bytes += sizeOf(files) - sizeOf(replaced);
        for (const file of files) {
          const place = stored.get(file.storedName)?.place ?? (places += 1);
          stored.set(file.storedName, { ...file, place, owner });
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
