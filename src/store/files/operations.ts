/**
 * What the store of uploads asks of a file system, and no more: a thin port, so that a test can
 * let any single call fail.
 */

import { close, open, read, unlink, writev } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { AppError } from '../../errors.ts';

export interface FileOperations {
  /** Makes a folder with a random ending that only this user may enter; gives its path. */
  createFolder(pathStart: string): Promise<string>;
  /** The names of the real folders in a folder: no files, no links. */
  listFolders(path: string): Promise<readonly string[]>;
  /** Removes a folder with all that is in it; fine where there is none. */
  removeFolder(path: string): Promise<void>;
  /** A descriptor for a new, empty file that only this user may read. */
  create(path: string): Promise<number>;
  open(path: string): Promise<number>;
  /** Appends; gives the number of bytes that were taken, which may be fewer. */
  write(descriptor: number, chunks: readonly Buffer[]): Promise<number>;
  /** Gives the number of bytes read; 0 at the end. */
  read(descriptor: number, into: Buffer, position: number): Promise<number>;
  /** Where there is one, a written file is on the disk before it is closed. */
  sync?(descriptor: number): Promise<void>;
  close(descriptor: number): Promise<void>;
  remove(path: string): Promise<void>;
}

const openFile = promisify(open);
const closeFile = promisify(close);
const writeChunks = promisify(writev);
const readBytes = promisify(read);
const removeFile = promisify(unlink);

export const fileOperations: FileOperations = {
  createFolder: (pathStart) => mkdtemp(pathStart),
  async listFolders(path) {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  },
  removeFolder: (path) => rm(path, { recursive: true, force: true }),
  create: (path) => openFile(path, 'wx', 0o600),
  open: (path) => openFile(path, 'r'),
  async write(descriptor, chunks) {
    const { bytesWritten } = await writeChunks(descriptor, chunks);
    return bytesWritten;
  },
  async read(descriptor, into, position) {
    const { bytesRead } = await readBytes(descriptor, into, 0, into.length, position);
    return bytesRead;
  },
  close: (descriptor) => closeFile(descriptor),
  remove: (path) => removeFile(path),
};

/** What the file system says in its own codes, for those that a client can do something about. */
export function toAppError(error: unknown): unknown {
  switch (codeOf(error) ?? '') {
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

/** `ENOENT` and the like; undefined for an error without a code. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
