/** The file system operations of the store of uploads. A test can make any single call fail. */

import { close, constants, open, read, unlink, writev } from 'node:fs';
import {
  mkdir,
  mkdtemp,
  open as openHandle,
  opendir,
  readdir,
  readFile as readWhole,
  rm,
  stat,
  utimes,
  writeFile as writeWhole,
} from 'node:fs/promises';
import { promisify } from 'node:util';
import { AppError, codeOf, overloaded } from '../../errors.ts';

export type FileOperations = typeof fileOperations;

// By descriptors: file handles take more CPU time, mostly for promises of each write.
const openFile = promisify(open);
const readFile = promisify(read);
const writeFile = promisify(writev);

export const fileOperations = {
  /** Creates a folder with a random suffix that only this user can access. Returns its path. */
  createFolder: (pathStart: string): Promise<string> => mkdtemp(pathStart),
  /** Returns the names of the folders in a folder, without files and links. */
  async listFolders(path: string): Promise<readonly string[]> {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  },
  /** Removes a folder and its content, if it exists. */
  removeFolder: (path: string) => rm(path, { recursive: true, force: true }),
  /** Creates an empty file that only this user can read. */
  create: (path: string) => openFile(path, 'wx', 0o600),
  open: (path: string) => openFile(path, 'r'),
  /** Appends. Returns the number of bytes written, which may be fewer than given. */
  write: async (file: number, chunks: readonly Buffer[]): Promise<number> =>
    (await writeFile(file, chunks)).bytesWritten,
  /** Returns the number of bytes read; 0 at the end of the file. */
  read: async (file: number, into: Buffer, position: number): Promise<number> =>
    (await readFile(file, into, 0, into.length, position)).bytesRead,
  /** Flushes the file to the disk. */
  sync: (path: string) => flush(path, constants.O_RDWR),
  close: promisify(close),
  remove: promisify(unlink),
  /** Creates a folder that only this user can access, if it does not exist. */
  async makeFolder(path: string): Promise<void> {
    await mkdir(path, { mode: 0o700 }).catch(allow('EEXIST'));
  },
  /** Flushes the names of a folder to the disk. Throws if the path is not a folder. */
  syncFolder: (path: string) =>
    // Some file systems do not support this, because they need not.
    flush(path, constants.O_RDONLY | constants.O_DIRECTORY, 'EINVAL', 'ENOTSUP'),
  /** Returns the names in a folder, at most `max`. */
  async listNames(path: string, max: number): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const { name } of await opendir(path, { bufferSize: 1_000 })) {
      names.push(name);
      if (names.length >= max) break;
    }
    return names;
  },
  /** Milliseconds since 1970; undefined if the file does not exist. */
  async modifiedAt(path: string): Promise<number | undefined> {
    return (await stat(path).catch(allow('ENOENT')))?.mtimeMs;
  },
  /** Sets the time of modification to now. */
  touch: (path: string) => utimes(path, new Date(), new Date()),
  /** Creates a file with this text, if it does not exist. */
  async createText(path: string, text: string): Promise<void> {
    await writeWhole(path, text, { flag: 'wx', mode: 0o600, flush: true }).catch(allow('EEXIST'));
  },
  /** Returns an empty text for a file that does not exist. */
  readText: async (path: string): Promise<string> =>
    (await readWhole(path, 'utf8').catch(allow('ENOENT')))?.trim() ?? '',
};

/** By a handle: Node forbids it for descriptors under `--permission`. */
async function flush(path: string, flags: number, ...allowed: readonly string[]): Promise<void> {
  const handle = await openHandle(path, flags);
  try {
    await handle.sync().catch(allow(...allowed));
  } finally {
    await handle.close();
  }
}

/** Ignores errors with these codes, and throws others. */
function allow(...codes: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!codes.includes(codeOf(error) ?? '')) throw error;
  };
}

/** Maps errors of the file system that a client can react to. */
export function toAppError(error: unknown): unknown {
  switch (codeOf(error) ?? '') {
    case 'ENOSPC':
    case 'EDQUOT':
      return new AppError('storage_full', 'There is no space left for uploaded files.');
    case 'EMFILE':
    case 'ENFILE':
      return overloaded('Too many files are open.');
    default:
      return error;
  }
}
