/**
 * Removes garbage from the folder of uploads: files that the index does not list and that have not
 * changed for a day, as uploads leave them whose process was killed.
 */

import { join } from 'node:path';
import { codeOf, toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { FileIndex } from '../file-index.ts';
import type { FileOperations } from './operations.ts';

export const dayMilliseconds = 86_400_000;
/** The maximum number of names that a sweep reads from the folder. */
const namesMax = 200_000;

export interface SweepOptions {
  readonly folder: string;
  readonly files: FileOperations;
  readonly index: FileIndex;
  readonly log: Log;
  /** Files that this process is about to commit. */
  readonly own: ReadonlySet<string>;
  /** True when the service is stopping. */
  readonly isOver: () => boolean;
}

/** Never rejects. Also marks the folder as one in use. */
export async function sweepFolder(options: SweepOptions): Promise<void> {
  const { folder, files, index, log, own, isOver } = options;
  try {
    await files.touch(folder);
    // `own` is older than this list: a file that is committed meanwhile is in one of them.
    const listed = new Set((await index.list()).map(({ temporaryName }) => temporaryName));
    for (const name of await files.listNames(folder, namesMax)) {
      if (isOver()) return;
      if (!isUpload(name) || listed.has(name) || own.has(name)) continue;
      const path = join(folder, name);
      if ((await ageOf(files, path)) <= dayMilliseconds) continue;
      // Another node may have removed it.
      await files.remove(path).catch(() => undefined);
    }
  } catch (error) {
    // The driver has logged the outage; the next sweep tries again.
    if (isOver() || ['overloaded', 'unavailable'].includes(codeOf(error) ?? '')) return;
    log('warn', 'the folder of uploads was not swept', { folder, reason: toReason(error) });
  }
}

/** True for the names that the store gives. Other files are not touched. */
export function isUpload(name: string): boolean {
  return name.endsWith('.upload');
}

/** The milliseconds since the last change. A file that is gone is new. */
export async function ageOf(files: FileOperations, path: string): Promise<number> {
  const modifiedAt = await files.modifiedAt(path);
  return modifiedAt === undefined ? 0 : Date.now() - modifiedAt;
}
