/** What a durable store of uploads asks of a file system beyond the thin port. */

import { constants, fsync } from 'node:fs';
import { mkdir, open, opendir, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { codeOf, type FileOperations, fileOperations } from './operations.ts';

export interface DurableFileOperations extends FileOperations {
  /** Waits until the file is on the disk. */
  sync(descriptor: number): Promise<void>;
  /** Makes a folder that only this user may enter; fine where it is there. */
  makeFolder(path: string): Promise<void>;
  /** Waits until the names in a folder are on the disk. Throws where it is no folder. */
  syncFolder(path: string): Promise<void>;
  /** The names in a folder, `max` at most. */
  listNames(path: string, max: number): Promise<readonly string[]>;
  /** In milliseconds since 1970; undefined where there is no such file. */
  modifiedAt(path: string): Promise<number | undefined>;
}

export const durableFileOperations: DurableFileOperations = {
  ...fileOperations,
  sync: promisify(fsync),
  async makeFolder(path) {
    try {
      await mkdir(path, { mode: 0o700 });
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  },
  async syncFolder(path) {
    const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await folder.sync();
    } catch (error) {
      // Some file systems keep names safe in their own way, and refuse to be asked.
      if (codeOf(error) !== 'EINVAL' && codeOf(error) !== 'ENOTSUP') throw error;
    } finally {
      await folder.close();
    }
  },
  async listNames(path, max) {
    const names: string[] = [];
    for await (const { name } of await opendir(path, { bufferSize: 1_000 })) {
      names.push(name);
      if (names.length >= max) break;
    }
    return names;
  },
  async modifiedAt(path) {
    try {
      return (await stat(path)).mtimeMs;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  },
};
