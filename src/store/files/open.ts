/** Opens the store of uploaded files: in a folder of this run, or in one that outlives it. */

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../../log.ts';
import type { Store } from '../store.ts';
import type { Place } from './check.ts';
import { codeOf, type FileOperations, fileOperations } from './operations.ts';
import { createRunFolder, removeDeadFolders, type Run } from './run-folder.ts';
import { createRunIndex } from './run-index.ts';
import { IndexedUploads } from './uploads.ts';

export interface OpenUploadsOptions {
  /** A folder of the deployer's; the system's temporary folder where empty. */
  readonly directory: string;
  readonly storedFilesMax: number;
  readonly storedBytesMax: number;
  readonly run: Run;
  /** Of a durable store of records. */
  readonly openIndex: Store['openFileIndex'];
  /** Never gives the same name twice, on any node. */
  readonly createName: () => string;
  readonly log: Log;
  /** Those of the system where left out. */
  readonly files?: FileOperations;
  /** How long a replaced file stays at least in a durable store; ten minutes where left out. */
  readonly graceSeconds?: number;
}

export { findDifferences, type Place, removeOrphans } from './check.ts';

const folderName = 'inkwell-files';
/** Longer than reading the index takes, and than a node may stand still in a download. */
const defaultGraceSeconds = 600;

/**
 * With a durable store of records and a folder of the deployer's, files outlive the process.
 * Throws a line for a person where the folder cannot be made or used. What dead runs left is
 * removed.
 */
export async function openUploads(options: OpenUploadsOptions): Promise<IndexedUploads> {
  const {
    storedFilesMax: filesMax,
    storedBytesMax: bytesMax,
    run,
    openIndex,
    files = fileOperations,
  } = options;
  const isDurable = options.directory !== '' && openIndex !== undefined;
  const directory = options.directory || tmpdir();
  await removeDeadFolders(directory, run, files);
  const shared = { files, createName: options.createName, log: options.log };
  if (!isDurable) {
    const folder = await createRunFolder(directory, run, files);
    return new IndexedUploads({ ...shared, folder, index: createRunIndex(filesMax, bytesMax) });
  }
  const { graceSeconds = defaultGraceSeconds } = options;
  const folder = await openFolder(directory, files);
  const index = await openIndex({ filesMax, bytesMax, graceSeconds });
  return new IndexedUploads({ ...shared, folder, index, graceSeconds });
}

/** For a command beside the servers, which stores nothing. */
export async function openPlace(
  directory: string,
  openIndex: NonNullable<Store['openFileIndex']>,
): Promise<Place> {
  if (directory === '') throw new Error('UPLOAD_DIR: without it, files go with their run.');
  const index = await openIndex({ filesMax: 0, bytesMax: 0, graceSeconds: defaultGraceSeconds });
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
