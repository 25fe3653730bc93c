/** Opens the store of uploaded files; the durable one is loaded where it is needed. */

import { tmpdir } from 'node:os';
import type { Log } from '../../log.ts';
import type { Store } from '../store.ts';
import type { Uploads } from '../uploads.ts';
import { fileOperations } from './operations.ts';
import type { Run } from './run-folder.ts';
import { createUploads } from './run-uploads.ts';

export interface OpenUploadsOptions {
  /** A folder of the deployer's; the system's temporary folder where empty. */
  readonly directory: string;
  readonly storedFilesMax: number;
  readonly run: Run;
  /** Of a durable store of records. */
  readonly openIndex: Store['openFileIndex'];
  /** Never gives the same name twice, on any node. */
  readonly createName: () => string;
  readonly log: Log;
}

/** With a durable store of records and a folder of the deployer's, files outlive the process. */
export async function openUploads(options: OpenUploadsOptions): Promise<Uploads> {
  const { directory, openIndex } = options;
  if (directory === '' || openIndex === undefined) {
    return createUploads({ ...options, directory: directory || tmpdir(), files: fileOperations });
  }
  const [{ openDurableUploads }, { durableFileOperations }] = await Promise.all([
    import('./durable-uploads.ts'),
    import('./durable-operations.ts'),
  ]);
  return openDurableUploads({ ...options, openIndex, files: durableFileOperations });
}
