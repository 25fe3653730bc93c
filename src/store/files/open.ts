/** Opens the store of uploaded files, in a folder of this run or in a durable one. */

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile as writeText } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../errors.ts';
import type { OwnedBuffers } from '../../owned-buffers.ts';
import { createRunIndex, type DurableFileIndex, type ReplacedFile } from '../file-index.ts';
import { allow, flushFolder, tryFolder } from '../flush.ts';
import { createMemoryRequests, type MemoryRequests } from '../memory-requests.ts';
import type { Store } from '../store.ts';
import { isDayOld, isUpload, openContent, throwAppError, writeFile } from './disk.ts';
import { Uploads, type UploadsOptions } from './uploads.ts';

type GivenOptions = Omit<UploadsOptions, 'folder' | 'index' | 'isDurable' | 'requests'>;

export interface OpenUploadsOptions extends GivenOptions {
  /** The keys of writes in the store of records. */
  readonly requests: UploadsOptions['requests'] | MemoryRequests;
  /** The folder from UPLOAD_DIR; if empty, the system's temporary folder. */
  readonly directory: string;
  /** Present for a durable store of records. */
  readonly openIndex: Store['openFileIndex'];
}

/** Uploads and removals of a run beside a database whose keys are kept; each takes 360 bytes. */
const requestsMax = 10_000;
const durableName = 'inkwell-files';
const runName = 'inkwell-run-';
const runFolder = /^inkwell-run-[0-9A-Za-z]{6}$/;

/**
 * Files are durable if the store of records is, and a folder is given. Throws an Error with a
 * message of one line if the folder cannot be created or used.
 */
export async function openUploads(options: OpenUploadsOptions): Promise<Uploads> {
  const { filesMax, bytesMax, openIndex, createName, requests } = options;
  const directory = options.directory || tmpdir();
  const limits = { filesMax, bytesMax };
  await removeOldFolders(directory);
  if (options.directory === '' || openIndex === undefined) {
    // Records in memory and files of the run share their keys.
    const ofRun =
      'run' in requests ? requests : createMemoryRequests(undefined, undefined, requestsMax);
    const index = createRunIndex(limits, ofRun.run);
    const folder = await mkdtemp(join(directory, runName)).catch(toStartError(directory));
    return new Uploads({ ...options, folder, index, requests: ofRun, isDurable: false });
  }
  const folder = join(directory, durableName);
  const index = openIndex(limits);
  await createFolder(directory, folder).catch(toStartError(folder));
  await checkFolder(folder, index, createName);
  return new Uploads({ ...options, folder, index, requests, isDurable: true });
}

/** Rejects if a start would refuse the folder for this index. Changes nothing. */
export async function checkUploads(directory: string, index: Checked): Promise<void> {
  if (directory !== '') await checkFolder(join(directory, durableName), index);
}

/** Rejects if files could not be stored in the folder of UPLOAD_DIR. Leaves nothing behind. */
export async function tryUploads(directory: string): Promise<void> {
  await tryFolder('UPLOAD_DIR', directory || tmpdir());
  const folder = join(directory, durableName);
  if (directory !== '' && existsSync(folder)) await tryFolder('UPLOAD_DIR', folder);
}

type Checked = Pick<DurableFileIndex, 'folderId' | 'list'>;

export type Folder = Awaited<ReturnType<typeof openFolder>>;

/**
 * Opens the folder of durable files for a command, which runs no sweep. With `createName` it is
 * made if it is not there, and files can be written. Throws as `openUploads`.
 */
export async function openFolder(directory: string, index: Checked, createName?: () => string) {
  const folder = join(directory, durableName);
  if (createName !== undefined) {
    await createFolder(directory, folder).catch(toStartError(folder));
  }
  await checkFolder(folder, index, createName);
  const written: string[] = [];
  return {
    /** The content of a file, as `openContent`. */
    read: ({ temporaryName, size }: ReplacedFile) =>
      openContent(join(folder, temporaryName), { start: 0, end: size }),
    /** Writes and flushes a file, which is garbage until an index lists it. */
    async write(content: AsyncIterable<OwnedBuffers>): Promise<ReplacedFile> {
      const temporaryName = `${createName?.()}.upload`;
      written.push(temporaryName);
      const path = join(folder, temporaryName);
      return { temporaryName, size: await writeFile(path, content, true).catch(throwAppError()) };
    },
    flush: () => flushFolder(folder),
    /** Removes what was written, if it is not to be listed. */
    async discard(): Promise<void> {
      for (const name of written) await rm(join(folder, name), { force: true });
    },
  };
}

/** For a path in which no folder can be used. */
function toStartError(path: string): (error: unknown) => never {
  return (error) => {
    const code = codeOf(error) ?? 'unknown';
    throw new Error(`UPLOAD_DIR: no folder can be used in ${path} (${code}).`, { cause: error });
  };
}

/** Creates a folder that only this user can access, if it does not exist. */
async function createFolder(directory: string, folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o700 }).catch(allow('EEXIST'));
  await flushFolder(folder);
  await flushFolder(directory);
}

/**
 * Removes what runs left that were killed, a day later. A folder in use is never that old, because
 * its run touches it: process ids and host names do not tell, since containers share both.
 */
async function removeOldFolders(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    if (!entry.isDirectory() || !runFolder.test(entry.name)) continue;
    const path = join(directory, entry.name);
    if (!(await isDayOld(path).catch(() => false))) continue;
    await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

/**
 * The folder has the id that the database knows, so that no node serves an index with the folder of
 * another one, and no sweep removes files that another database lists. Without `createId` a folder
 * of neither is left as it is.
 */
async function checkFolder(folder: string, index: Checked, createId?: () => string): Promise<void> {
  const path = join(folder, 'id');
  const known = await index.folderId();
  if (known === undefined) {
    const isUsed = (await readdir(folder).catch(allow('ENOENT')))?.some(isUpload) === true;
    if (isUsed && (await index.list()).length === 0) {
      throw new Error(`UPLOAD_DIR: the database of STORE_URL lists no file of ${folder}.`);
    }
    if (createId === undefined) return;
    const options = { flag: 'wx', mode: 0o600, flush: true };
    await writeText(path, createId(), options).catch(allow('EEXIST'));
  }
  let found = await readId(path);
  // Another node that starts now has created the file, and is about to write it.
  for (let tries = 0; found === '' && tries < 20; tries += 1) {
    await pause(50);
    found = await readId(path);
  }
  const expected = known ?? (await index.folderId(found));
  if (found === expected) return;
  const cure = `If its files are lost, write ${expected} to the file "id" in it.`;
  throw new Error(`UPLOAD_DIR: ${folder} is not the folder of this database. ${cure}`);
}

/** Returns an empty text if there is no file. */
async function readId(path: string): Promise<string> {
  return (await readFile(path, 'utf8').catch(allow('ENOENT')))?.trim() ?? '';
}
