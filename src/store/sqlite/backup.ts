/** Copies the database file while a server writes to it. */

import { existsSync } from 'node:fs';
import { type FileHandle, link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { codeOf } from '../../errors.ts';
import { flush, flushFolder } from '../flush.ts';
import { openToRead } from './database.ts';

/**
 * Copies a consistent state with all transactions committed before to `to`, which only this user
 * can read. Writes continue in the meantime. `to` appears when the copy is whole and on the disk;
 * what an earlier run left in `to.partial` is replaced. Throws if `to` exists or the copy fails.
 */
export async function backUpSqlite(from: string, to: string): Promise<void> {
  const path = resolve(to);
  const partial = `${path}.partial`;
  const database = await openToRead(from);
  try {
    if (existsSync(path)) throw notMade(path, 'EEXIST');
    const made = await create(partial);
    try {
      database.prepare('VACUUM INTO ?').run(partial);
      // SQLite does not flush the copy to the disk.
      await flush(partial);
      // Another run may have replaced it.
      if ((await stat(partial)).ino !== (await made.stat()).ino) throw notMade(partial, 'EBUSY');
      await publish(partial, path);
    } finally {
      await made.close();
      await rm(partial, { force: true });
    }
  } finally {
    database.close();
  }
  await flushFolder(dirname(path));
}

/** Returns the handle of a new file of this user alone. */
async function create(path: string): Promise<FileHandle> {
  try {
    await rm(path, { force: true });
    return await open(path, 'wx', 0o600);
  } catch (error) {
    throw notMade(path, codeOf(error), error);
  }
}

/** A link replaces no file, but not every file system has them. */
async function publish(partial: string, path: string): Promise<void> {
  try {
    await link(partial, path);
  } catch (error) {
    if (codeOf(error) === 'EEXIST' || existsSync(path)) throw notMade(path, 'EEXIST', error);
    await rename(partial, path);
  }
}

function notMade(path: string, code = 'unknown fault', cause?: unknown): Error {
  const next = code === 'EEXIST' ? ': it is there and is not replaced, so give another name' : '';
  return new Error(`The file ${path} cannot be made (${code})${next}.`, { cause });
}
