/**
 * Compares the folder of a durable store of uploads with its index, once at start and beside the
 * requests, or by a command. At start what does not fit is reported in one line of the log and left
 * as it is: a file without an entry may be another node's upload on its way, and an entry without a
 * file may have its file back when the right disk is mounted.
 */

import { join } from 'node:path';
import { toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { FileIndex } from '../file-index.ts';
import type { WrittenFile } from '../uploads.ts';
import { removeFiles } from './content.ts';
import type { FileOperations } from './operations.ts';

/** The folder of a durable store of uploads, and its index. */
export type Place = Pick<CheckOptions, 'folder' | 'files' | 'index'>;

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
/** No upload takes this long. */
const youngMilliseconds = 3_600_000;
const namesLogged = 5;
/** A file without an entry that is older is given up: no request takes a day. */
const orphanMilliseconds = 86_400_000;
/** The names that this program gives. Files of other names belong to somebody else. */
const givenName = /^[0-9a-f-]{36}\.upload$/;

/** Never rejects. */
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
 * Files without an entry, entries without a file as text, and whether any file has an entry. The
 * folder first: a second look at a file tells what has come or gone meanwhile.
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
 * Files without an entry that are older than a day, entries without a file as text, and whether the
 * index names any file of the folder.
 */
export async function findDifferences(place: Place) {
  const never = (): boolean => false;
  const { strays, ...rest } = await compare({ ...place, isOwn: never, isOver: never });
  const end = Date.now() - orphanMilliseconds;
  const old = [...strays].filter(([name, at]) => at < end && givenName.test(name));
  return { orphans: old.map(([name]) => name), ...rest };
}

/**
 * Gives the names of those that could not be removed. The index gives up each before it goes: no
 * commit that comes late can name it, and one that came meanwhile keeps it. A node forgets them.
 */
export async function removeOrphans(
  { folder, files, index }: Place,
  orphans: readonly string[],
): Promise<readonly string[]> {
  return (await removeFiles(files, folder, await index.abandon(orphans))).left;
}

function toText(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  return names.slice(0, namesLogged).join(', ') + (names.length > namesLogged ? ', …' : '');
}
