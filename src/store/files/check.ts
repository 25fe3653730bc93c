/**
 * Compares the folder of a durable store of uploads with its index, once at start and beside the
 * requests. What does not fit is reported in one line of the log and left as it is: a file without
 * an entry may be another node's upload on its way, and an entry without a file may have its file
 * back when the right disk is mounted.
 */

import { join } from 'node:path';
import { toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { FileIndex } from '../file-index.ts';
import type { FileOperations } from './operations.ts';

export interface CheckOptions {
  readonly folder: string;
  readonly files: FileOperations;
  readonly index: FileIndex;
  readonly log: Log;
  /** Files that this process has begun since it started: they are on their way. */
  readonly isOwn: (name: string) => boolean;
  /** The service is stopping. */
  readonly isOver: () => boolean;
}

/** Names in the folder that are looked at. */
const namesMax = 200_000;
/** No upload is on its way for so long. */
const youngMilliseconds = 3_600_000;
const namesLogged = 5;

/** Never rejects. */
export async function checkUploads(options: CheckOptions): Promise<void> {
  const { folder, log, isOver } = options;
  try {
    const { strays, young, missing } = await compare(options);
    if (isOver() || strays.length + missing.length === 0) return;
    const isHarmless = young === strays.length && missing.length === 0;
    log(isHarmless ? 'info' : 'warn', 'stored files and their index differ', {
      folder,
      filesWithoutEntry: strays.length,
      youngerThanAnHour: young,
      files: toText(strays),
      entriesWithoutFile: missing.length,
      entries: toText(missing),
    });
  } catch (error) {
    if (!isOver())
      log('warn', 'stored files were not checked', { folder, reason: toReason(error) });
  }
}

interface Differences {
  /** Names in the folder. */
  readonly strays: readonly string[];
  /** How many of them may be on their way into the index. */
  readonly young: number;
  /** Stored names, each with the name on disk. */
  readonly missing: readonly string[];
}

/** The folder first: a second look at a file tells what has come or gone meanwhile. */
async function compare(options: CheckOptions): Promise<Differences> {
  const { folder, files, index, isOwn, isOver } = options;
  const found = new Set(await files.listNames(folder, namesMax));
  const entries = (await index.list()).files;
  const known = new Set([
    ...entries.map(({ temporaryName }) => temporaryName),
    ...(await index.replaced()),
  ]);
  const strays: string[] = [];
  let young = 0;
  for (const name of found) {
    if (known.has(name) || isOwn(name) || isOver()) continue;
    const modifiedAt = await files.modifiedAt(join(folder, name));
    if (modifiedAt === undefined) continue;
    strays.push(name);
    if (Date.now() - modifiedAt < youngMilliseconds) young += 1;
  }
  const missing: string[] = [];
  for (const { storedName, temporaryName } of entries) {
    if (found.has(temporaryName) || isOver()) continue;
    if ((await files.modifiedAt(join(folder, temporaryName))) !== undefined) continue;
    missing.push(`${storedName} (${temporaryName})`);
  }
  return { strays, young, missing };
}

function toText(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  return names.slice(0, namesLogged).join(', ') + (names.length > namesLogged ? ', …' : '');
}
