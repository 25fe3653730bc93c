/** Files and folders that are on the disk after a loss of power too. */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
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
