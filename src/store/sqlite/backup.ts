/** Copies the database file while a server writes to it. */

import { open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { flush, flushFolder } from '../flush.ts';
import { openToRead } from './database.ts';

/**
 * Copies a consistent state with all transactions committed before to `to`, which only this user
 * can read. Writes continue in the meantime. `to` does not exist, is empty, or is the complete,
 * flushed copy. Throws if `to` exists or the copy fails; after a failure `to` does not exist.
 */
export async function backUpSqlite(from: string, to: string): Promise<void> {
  const path = resolve(to);
  const partial = `${path}.partial`;
  const database = await openToRead(from);
  const made: string[] = [];
  try {
    // Creates the file first, so that no existing file is replaced.
    for (const name of [path, partial]) {
      await create(name);
      made.push(name);
    }
    database.prepare('VACUUM INTO ?').run(partial);
    // SQLite does not flush the copy to the disk.
    await flush(partial);
    await rename(partial, path);
  } catch (error) {
    for (const name of made) await rm(name, { force: true });
    throw error;
  } finally {
    database.close();
  }
  await flushFolder(dirname(path));
}

async function create(path: string): Promise<void> {
  try {
    await (await open(path, 'wx', 0o600)).close();
  } catch (error) {
    const { code = 'unknown fault' } = error as { code?: string };
    throw new Error(`The file ${path} cannot be made (${code}).`, { cause: error });
  }
}
