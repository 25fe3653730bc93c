/** Opens the store of uploaded files, in a folder of this run or in a durable one. */

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { DurableFileIndex, FileLimits } from '../file-index.ts';
import type { Store } from '../store.ts';
import { type FileOperations, fileOperations } from './operations.ts';
import { createRunIndex } from './run-index.ts';
import { ageOf, dayMilliseconds, isUpload } from './sweep.ts';
import { Uploads } from './uploads.ts';

export interface OpenUploadsOptions extends FileLimits {
  /** The folder from UPLOAD_DIR; if empty, the system's temporary folder. */
  readonly directory: string;
  /** Present for a durable store of records. */
  readonly openIndex: Store['openFileIndex'];
  /** Returns unique names, across all nodes. */
  readonly createName: () => string;
  readonly log: Log;
  /** Default: the file system. */
  readonly files?: FileOperations;
}

const durableName = 'inkwell-files';
const runName = 'inkwell-run-';
const runFolder = /^inkwell-run-[0-9A-Za-z]{6}$/;

/**
 * Files are durable if the store of records is, and a folder is given. Throws an Error with a
 * message of one line if the folder cannot be created or used.
 */
export async function openUploads(options: OpenUploadsOptions): Promise<Uploads> {
  const { filesMax, bytesMax, openIndex, createName, log, files = fileOperations } = options;
  const directory = options.directory || tmpdir();
  await removeOldFolders(directory, files);
  const shared = { files, createName, log, filesMax, bytesMax };
  if (options.directory === '' || openIndex === undefined) {
    const folder = await createFolder(directory, () =>
      files.createFolder(join(directory, runName)),
    );
    return new Uploads({ ...shared, folder, index: createRunIndex({ filesMax, bytesMax }) });
  }
  const folder = join(directory, durableName);
  const index = openIndex({ filesMax, bytesMax });
  await createFolder(folder, async () => {
    await files.makeFolder(folder);
    await files.syncFolder(folder);
    await files.syncFolder(directory);
  });
  await checkFolder(folder, index, { files, createName });
  return new Uploads({ ...shared, folder, index, durable: index });
}

async function createFolder<T>(path: string, create: () => Promise<T>): Promise<T> {
  try {
    return await create();
  } catch (error) {
    const code = codeOf(error) ?? 'unknown';
    throw new Error(`UPLOAD_DIR: no folder can be used in ${path} (${code}).`, { cause: error });
  }
}

/**
 * Removes what runs left that were killed, a day later. A folder in use is never that old, because
 * its run touches it: process ids and host names do not tell, since containers share both.
 */
async function removeOldFolders(directory: string, files: FileOperations): Promise<void> {
  for (const name of await files.listFolders(directory).catch(() => [])) {
    const path = join(directory, name);
    if (!runFolder.test(name)) continue;
    const age = await ageOf(files, path).catch(() => 0);
    if (age > dayMilliseconds) await files.removeFolder(path).catch(() => undefined);
  }
}

/**
 * The folder has the id that the database knows, so that no node serves an index with the folder of
 * another one, and no sweep removes files that another database lists.
 */
async function checkFolder(
  folder: string,
  index: DurableFileIndex,
  { files, createName }: Pick<Required<OpenUploadsOptions>, 'files' | 'createName'>,
): Promise<void> {
  const path = join(folder, 'id');
  const known = await index.folderId();
  if (known === undefined) {
    const isUsed = (await files.listNames(folder, 1_000)).some(isUpload);
    if (isUsed && (await index.list()).length === 0) {
      throw new Error(`UPLOAD_DIR: the database of STORE_URL lists no file of ${folder}.`);
    }
    await files.createText(path, createName());
  }
  let found = await files.readText(path);
  // Another node that starts now has created the file, and is about to write it.
  for (let tries = 0; found === '' && tries < 20; tries += 1) {
    await pause(50);
    found = await files.readText(path);
  }
  const expected = known ?? (await index.claimFolder(found));
  if (found === expected) return;
  const cure = `If its files are lost, write ${expected} to the file "id" in it.`;
  throw new Error(`UPLOAD_DIR: ${folder} is not the folder of this database. ${cure}`);
}
