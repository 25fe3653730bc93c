/**
 * The port of the store of uploaded files (Spec §4.4, R18): the files of a request become visible
 * all at once or not at all, and a download gets one whole version of each file.
 */

import type { ByteSource } from '../byte-source.ts';
import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** A file that was written completely. Until it is committed, only its upload can use it. */
export interface WrittenFile {
  readonly storedName: string;
  /** The file name in the folder of the store. */
  readonly temporaryName: string;
  readonly size: number;
}

/** The files of one request before they are stored. Call `close()` in any case. */
export interface Upload {
  /**
   * Writes one file as it arrives. Throws `storage_full` if the disk is full, `overloaded` if too
   * many files are open, and the error of `content`.
   */
  write(storedName: string, content: ByteSource): Promise<WrittenFile>;
  /**
   * Makes these files visible at one moment; each replaces the file of its name. Throws
   * `storage_full` if more than `storedFilesMax` files or `storedBytesMax` bytes would be stored.
   */
  commit(files: readonly WrittenFile[]): Promise<void>;
  /** Removes the files that were not committed. Never rejects. */
  close(): Promise<void>;
}

/** From `start` up to, not including, `end`. */
interface Bytes {
  readonly start: number;
  readonly end: number;
}

/** The stored files at one moment, in the order of their names' first storage (R2). */
export interface Snapshot {
  readonly files: readonly WrittenFile[];
  /** Reads a file or a range of it. Throws if the bytes on disk are not there any more. */
  read(file: WrittenFile, range?: Bytes): AsyncGenerator<Buffer, void, undefined>;
  /** Releases the files; those that were replaced in the meantime are removed. Never rejects. */
  release(): Promise<void>;
}

export interface Uploads {
  begin(): Upload;
  /**
   * Opens a snapshot of all stored files, or of the one with this name; the caller must release it.
   * Throws `unavailable` if the index is in a database that does not answer.
   */
  open(storedName?: string): MaybePromise<Snapshot>;
  /** Removes a file; open snapshots keep it. Does nothing if it was replaced or removed. */
  remove(file: WrittenFile): Promise<void>;
  /** Uploads in progress fail with `draining`. */
  close(): Promise<void>;
}

/** The error of a store of uploads that was closed. */
export function stopping(): AppError {
  return new AppError('draining', 'The service is stopping.', { close: true });
}

export function tooManyFiles(filesMax: number, bytesMax: number): AppError {
  const bounds = `${filesMax} files with ${bytesMax} bytes in all`;
  return new AppError('storage_full', `No more than ${bounds} can be kept.`);
}
