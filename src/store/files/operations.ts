/**
 * What the store of uploads asks of a file system, and no more: a thin port, so that a test can
 * let any single call fail.
 */

import { constants } from 'node:fs';
import {
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  opendir,
  readdir,
  rm,
  stat,
  unlink,
} from 'node:fs/promises';
import { AppError } from '../../errors.ts';

export type FileOperations = typeof fileOperations;

export const fileOperations = {
  /** Makes a folder with a random ending that only this user may enter; gives its path. */
  createFolder: (pathStart: string): Promise<string> => mkdtemp(pathStart),
  /** The names of the real folders in a folder: no files, no links. */
  async listFolders(path: string): Promise<readonly string[]> {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  },
  /** Removes a folder with all that is in it; fine where there is none. */
  removeFolder: (path: string) => rm(path, { recursive: true, force: true }),
  /** A new, empty file that only this user may read. */
  create: (path: string) => open(path, 'wx', 0o600),
  open: (path: string) => open(path, 'r'),
  /** Appends; gives the number of bytes that were taken, which may be fewer. */
  write: async (file: FileHandle, chunks: readonly Buffer[]): Promise<number> =>
    (await file.writev(chunks)).bytesWritten,
  /** Gives the number of bytes read; 0 at the end. */
  read: async (file: FileHandle, into: Buffer, position: number): Promise<number> =>
    (await file.read(into, 0, into.length, position)).bytesRead,
  /** Waits until the file is on the disk. Not by its descriptor: `--permission` refuses that. */
  sync: (file: FileHandle) => file.sync(),
  close: (file: FileHandle) => file.close(),
  remove: (path: string) => unlink(path),
  /** Makes a folder that only this user may enter; fine where it is there. */
  async makeFolder(path: string): Promise<void> {
    await mkdir(path, { mode: 0o700 }).catch(allow('EEXIST'));
  },
  /** Waits until the names in a folder are on the disk. Throws where it is no folder. */
  async syncFolder(path: string): Promise<void> {
    const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      // Some file systems keep names safe in their own way, and refuse to be asked.
      await folder.sync().catch(allow('EINVAL', 'ENOTSUP'));
    } finally {
      await folder.close();
    }
  },
  /** The names in a folder, `max` at most. */
  async listNames(path: string, max: number): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const { name } of await opendir(path, { bufferSize: 1_000 })) {
      names.push(name);
      if (names.length >= max) break;
    }
    return names;
  },
  /** In milliseconds since 1970; undefined where there is no such file. */
  async modifiedAt(path: string): Promise<number | undefined> {
    return (await stat(path).catch(allow('ENOENT')))?.mtimeMs;
  },
};

/** Passes over errors with these codes, and throws any other. */
function allow(...codes: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!codes.includes(codeOf(error) ?? '')) throw error;
  };
}

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
