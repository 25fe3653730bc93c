/** Files and folders that are on the disk after a loss of power too. */

import { constants } from 'node:fs';
import { mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../errors.ts';

/** Flushes the names of a folder to the disk. Throws if the path is not a folder. */
export function flushFolder(path: string): Promise<void> {
  // Some file systems do not support this, because they need not.
  return flush(path, constants.O_RDONLY | constants.O_DIRECTORY, 'EINVAL', 'ENOTSUP');
}

/**
 * Flushes a file to the disk; errors with the codes `allowed` are ignored. By a handle: Node
 * forbids it for descriptors under `--permission`.
 */
export async function flush(
  path: string,
  flags = constants.O_RDONLY,
  ...allowed: readonly string[]
): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync().catch(allow(...allowed));
  } finally {
    await handle.close();
  }
}

/** Ignores errors with these codes, and throws others. */
export function allow(...codes: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!codes.includes(codeOf(error) ?? '')) throw error;
  };
}

/** Enough to find a full disk, or a quota. */
const triedBytes = 65_536;
const cures: Readonly<Record<string, string>> = {
  ENOENT: 'create it, or correct its name',
  ENOTDIR: 'it is not a folder',
  EISDIR: 'it is a folder: name a file in it',
  EACCES: 'let the user of this process write there',
  EPERM: 'let the user of this process write there',
  EROFS: 'mount it for writing',
  ENOSPC: 'free some space',
  EDQUOT: 'raise the quota',
  EFBIG: 'raise the limit for the size of files',
};

/** Returns the code of an error of the file system, and what to do about it. */
export function describeFault(error: unknown): string {
  const code = codeOf(error) ?? 'unknown fault';
  return `(${code})${cures[code] === undefined ? '' : `: ${cures[code]}`}`;
}

/**
 * Does in a folder what stored files need, on a scratch name that is gone afterwards: writes,
 * flushes and renames. Throws an Error that names the setting, and says what to do.
 */
export async function tryFolder(setting: string, folder: string): Promise<void> {
  try {
    const scratch = await mkdtemp(join(folder, 'inkwell-check-'));
    try {
      const [from, to] = [join(scratch, 'from'), join(scratch, 'to')];
      await writeFile(from, Buffer.alloc(triedBytes), { flush: true });
      await rename(from, to);
      await flushFolder(scratch);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  } catch (error) {
    const message = `${setting}: no file can be written in ${folder} ${describeFault(error)}.`;
    throw new Error(message, { cause: error });
  }
}
