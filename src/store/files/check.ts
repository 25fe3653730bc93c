/**
 * Compares the folder of a durable store of uploads with its index: at the start, while requests
 * are served, or by a command. The start only logs differences: a file without an entry may be an
 * upload in progress on another node, and the file of an entry may return when the right disk is
 * mounted.
 */

import { join } from 'node:path';
import { toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { FileIndex } from '../file-index.ts';
import type { WrittenFile } from '../uploads.ts';
import { removeFiles } from './content.ts';
import type { FileOperations } from './operations.ts';

/** The folder of a durable store of uploads, and its index. */
export type UploadFolder = Pick<CheckOptions, 'folder' | 'files' | 'index'>;

export interface CheckOptions {
  readonly folder: string;
  readonly files: FileOperations;
  readonly index: FileIndex;
  readonly log: Log;
  /** True for files of this process: their uploads may be in progress. */
  readonly isOwn: (name: string) => boolean;
  /** True when the service is stopping. */
  readonly isOver: () => boolean;
}

/** Maximum number of names read from the folder. */
const namesMax = 200_000;
/** Longer than any upload takes. */
const youngMilliseconds = 3_600_000;
const namesLogged = 5;
/** An older file without an entry is an orphan: no request takes a day. */
const orphanMilliseconds = 86_400_000;
/** The file names of this program. Other files are not touched. */
const givenName = /^[0-9a-f-]{36}\.upload$/;

/** Logs the differences. Never rejects. */
export async function checkUploads(options: CheckOptions): Promise<void> {
  const { folder, log, isOver } = options;
  try {
    const { strays, missing } = await compare(options);
    if (isOver() || strays.size + missing.length === 0) return;
    const now = Date.now();
    const young = [...strays.values()].filter((at) => now - at < youngMilliseconds).length;
    const isHarmless = young === strays.size && missing.length === 0;
    log(isHarmless ? 'info' : 'warn', 'stored files and their index differ', {
      folder,
      filesWithoutEntry: strays.size,
      youngerThanAnHour: young,
      files: toText([...strays.keys()]),
      entriesWithoutFile: missing.length,
      entries: toText(missing),
    });
  } catch (error) {
    if (!isOver())
      log('warn', 'stored files were not checked', { folder, reason: toReason(error) });
  }
}

/**
 * Returns files without an entry, entries without a file as text, and whether any file has an
 * entry. Reads the folder first: a second look tells which files came or went in the meantime.
 */
async function compare(options: Omit<CheckOptions, 'log'>) {
  const { folder, files, index, isOwn, isOver } = options;
  const found = new Set(await files.listNames(folder, namesMax));
  const entries = (await index.list()).files;
  const known = new Set([
    ...entries.map(({ temporaryName }) => temporaryName),
    ...(await index.replaced()),
  ]);
  const lookAt = async (names: readonly string[]): Promise<Map<string, number>> => {
    const times = new Map<string, number>();
    for (const name of names) {
      const modifiedAt = isOver() ? undefined : await files.modifiedAt(join(folder, name));
      if (modifiedAt !== undefined) times.set(name, modifiedAt);
    }
    return times;
  };
  const unnamed = [...found].filter((name) => !known.has(name));
  const strays = await lookAt(unnamed.filter((name) => !isOwn(name)));
  const unseen = entries.filter(({ temporaryName }) => !found.has(temporaryName));
  const late = await lookAt(unseen.map(({ temporaryName }) => temporaryName));
  const missing = unseen.filter(({ temporaryName }) => !late.has(temporaryName));
  const toEntry = ({ storedName, temporaryName }: WrittenFile) =>
    `${storedName} (${temporaryName})`;
  return { strays, missing: missing.map(toEntry), isNamed: unnamed.length < found.size };
}

/**
 * Returns files without an entry that are older than a day, entries without a file as text, and
 * whether the index has an entry for any file of the folder.
 */
export async function findDifferences(stored: UploadFolder) {
  const never = (): boolean => false;
  const { strays, ...rest } = await compare({ ...stored, isOwn: never, isOver: never });
  const end = Date.now() - orphanMilliseconds;
  const old = [...strays].filter(([name, at]) => at < end && givenName.test(name));
  return { orphans: old.map(([name]) => name), ...rest };
}

/**
 * Removes files; returns the names of those that it could not. Each is abandoned in the index
 * first: no later commit can store it, and one stored in the meantime is kept. A node forgets them.
 */
export async function removeOrphans(
  { folder, files, index }: UploadFolder,
  orphans: readonly string[],
): Promise<readonly string[]> {
  return (await removeFiles(files, folder, await index.abandon(orphans))).left;
}

function toText(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  return names.slice(0, namesLogged).join(', ') + (names.length > namesLogged ? ', …' : '');
}
