/** A copy of the file while a server writes to it. */

import { open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { openToRead } from './database.ts';

/**
 * `to` gets all that was committed before, in one state, and is private to this user. Writes go on
 * meanwhile. Under its name there is nothing, an empty file, or the whole copy on the disk. Throws
 * where `to` exists, and where the copy cannot be made; then `to` is not there.
 */
export async function backUpSqlite(from: string, to: string): Promise<void> {
  const path = resolve(to);
  const partial = `${path}.partial`;
  const database = await openToRead(from);
  const made: string[] = [];
  try {
    // The name is taken first, so that nothing is ever replaced.
    for (const name of [path, partial]) {
      await create(name);
      made.push(name);
    }
    database.prepare('VACUUM INTO ?').run(partial);
    await sync(partial);
    await rename(partial, path);
  } catch (error) {
    for (const name of made) await rm(name, { force: true });
    throw error;
  } finally {
    database.close();
  }
  await sync(dirname(path));
}

async function create(path: string): Promise<void> {
  try {
    await (await open(path, 'wx', 0o600)).close();
  } catch (error) {
    const { code = 'unknown fault' } = error as { code?: string };
    throw new Error(`The file ${path} cannot be made (${code}).`, { cause: error });
  }
}

/** SQLite leaves the copy to the system's cache. */
async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
