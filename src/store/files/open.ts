/** Opens the store of uploaded files, in a folder of this run or in a durable one. */

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { Store } from '../store.ts';
import type { UploadFolder } from './check.ts';
import { type FileOperations, fileOperations } from './operations.ts';
import { createRunFolder, removeDeadFolders, type Run } from './run-folder.ts';
import { createRunIndex } from './run-index.ts';
import { IndexedUploads } from './uploads.ts';

export interface OpenUploadsOptions {
  /** The folder from UPLOAD_DIR; if empty, the system's temporary folder. */
  readonly directory: string;
  readonly storedFilesMax: number;
  readonly storedBytesMax: number;
  readonly run: Run;
  /** Present for a durable store of records. */
  readonly openIndex: Store['openFileIndex'];
  /** Returns unique names, across all nodes. */
  readonly createName: () => string;
  readonly log: Log;
  /** Default: the file system. */
  readonly files?: FileOperations;
  /** The minimum time that a durable store keeps a replaced file; default: ten minutes. */
  readonly graceSeconds?: number;
}

export { findDifferences, type UploadFolder, removeOrphans } from './check.ts';

const folderName = 'inkwell-files';
/** Longer than reading the index takes, and than a node may be paused during a download. */
const defaultGraceSeconds = 600;

/**
 * Files are durable if the store of records is, and a folder is given. Throws an Error with a
 * message of one line if the folder cannot be created or used. Folders of ended runs are removed.
 */
export async function openUploads(options: OpenUploadsOptions): Promise<IndexedUploads> {
  const { storedFilesMax: filesMax, storedBytesMax: bytesMax, run, openIndex } = options;
  const { createName, log, files = fileOperations, graceSeconds = defaultGraceSeconds } = options;
  const directory = options.directory || tmpdir();
  await removeDeadFolders(directory, run, files);
  const shared = { files, createName, log };
  if (options.directory === '' || openIndex === undefined) {
    const folder = await createRunFolder(directory, run, files);
    return new IndexedUploads({ ...shared, folder, index: createRunIndex(filesMax, bytesMax) });
  }
  const folder = await openFolder(directory, files);
  const index = openIndex({ filesMax, bytesMax, graceSeconds });
  return new IndexedUploads({ ...shared, folder, index, graceSeconds });
}

/** For commands that run beside the servers; stores nothing. */
export function openUploadFolder(
  directory: string,
  openIndex: NonNullable<Store['openFileIndex']>,
): UploadFolder {
  if (directory === '') throw new Error('UPLOAD_DIR: without it, files go with their run.');
  const index = openIndex({ filesMax: 0, bytesMax: 0, graceSeconds: defaultGraceSeconds });
  return { folder: join(directory, folderName), files: fileOperations, index };
}

async function openFolder(directory: string, files: FileOperations): Promise<string> {
  const folder = join(directory, folderName);
  try {
    await files.makeFolder(folder);
    await files.syncFolder(folder);
    await files.syncFolder(directory);
    return folder;
  } catch (error) {
    const code = codeOf(error) ?? 'unknown';
    throw new Error(`UPLOAD_DIR: the folder ${folder} cannot be used (${code}).`, { cause: error });
  }
}
