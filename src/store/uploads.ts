/**
 * The port of the store of uploaded files (Spec §4.4, R18): a request's files become visible
 * together or not at all, and a download gets one version of each file whole.
 */

import type { ByteSource } from '../byte-source.ts';
import { AppError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** A file that has arrived whole. Only its upload can use it before it is committed. */
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
   * Throws `storage_full` where more files than `storedFilesMax` would be kept, or more bytes than
   * `storedBytesMax`.
   */
  commit(files: readonly WrittenFile[]): Promise<void>;
  /** Removes what was written and not committed. Never rejects. */
  close(): Promise<void>;
}

/** From `start` to before `end`. */
interface Bytes {
  readonly start: number;
  readonly end: number;
}

/** The stored files of one moment, in the order in which they came (R2). */
export interface Snapshot {
  readonly files: readonly WrittenFile[];
  /**
   * The bytes of one of the files, or a range of them. Throws where they are not there as they were
   * written.
   */
  read(file: WrittenFile, range?: Bytes): AsyncGenerator<Buffer, void, undefined>;
  /** Lets go of the files; those that were replaced meanwhile are removed. Never rejects. */
  release(): Promise<void>;
}

export interface Uploads {
  begin(): Upload;
  /**
   * What is stored now, or what has this name of it, held until its `release()`. Throws
   * `unavailable` where a database has the index and does not answer.
   */
  open(storedName?: string): MaybePromise<Snapshot>;
  /** Its readers keep it; fine where it has been replaced or removed meanwhile. */
  remove(file: WrittenFile): Promise<void>;
  /** What is on its way then fails with `draining`. */
  close(): Promise<void>;
}

/** What a store of uploads that has been closed throws. */
export function stopping(): AppError {
  return new AppError('draining', 'The service is stopping.', { close: true });
}

export function tooManyFiles(filesMax: number, bytesMax: number): AppError {
  const bounds = `${filesMax} files with ${bytesMax} bytes in all`;
  return new AppError('storage_full', `No more than ${bounds} can be kept.`);
}
