/**
 * The folder of one run (Spec §4.4 rule 1, R18). Its name tells who made it, so that what a run
 * that died left behind is known and removed, and nothing else is ever touched.
 */

import { join } from 'node:path';
import { codeOf, type FileOperations } from './operations.ts';

/** Which process this is, among all that ever made a folder in the same place. */
export interface Run {
  /** The machine's name: the processes of another machine cannot be seen from here. */
  readonly host: string;
  readonly pid: number;
  /** Milliseconds since 1970; tells apart processes that got the same id one after the other. */
  readonly startedAt: number;
  isRunning(pid: number): boolean;
}

/** A name of 64 bytes, which is the longest that Linux has. */
const hostIdLengthMax = 128;

const folderName = /^inkwell-([0-9a-f]{0,128})-([0-9]{1,10})-([0-9]{1,16})-[0-9A-Za-z]{6}$/;

/** Makes the folder of this run in `directory`; gives its path. Throws a line for a person. */
export async function createRunFolder(
  directory: string,
  run: Run,
  files: FileOperations,
): Promise<string> {
  const start = `inkwell-${toHostId(run.host)}-${run.pid}-${Math.floor(run.startedAt)}-`;
  try {
    return await files.createFolder(join(directory, start));
  } catch (error) {
    const code = codeOf(error) ?? 'unknown';
    throw new Error(`UPLOAD_DIR: no folder can be made in ${directory} (${code}).`, {
      cause: error,
    });
  }
}

/** Removes the folders of runs of this machine that are over. One that stays is no error. */
export async function removeDeadFolders(
  directory: string,
  run: Run,
  files: FileOperations,
): Promise<void> {
  const names = await files.listFolders(directory).catch(() => []);
  for (const name of names) {
    if (isDead(name, run)) await files.removeFolder(join(directory, name)).catch(() => undefined);
  }
}

function isDead(name: string, run: Run): boolean {
  const [, hostId, pid, startedAt] = folderName.exec(name) ?? [];
  if (hostId !== toHostId(run.host)) return false;
  // The same id at another time: an earlier process, common where a container starts again.
  if (Number(pid) === run.pid) return Number(startedAt) !== Math.floor(run.startedAt);
  return !run.isRunning(Number(pid));
}

/** The machine's name in hex digits, as much as a folder's name has room for. */
function toHostId(host: string): string {
  return Buffer.from(host).toString('hex').slice(0, hostIdLengthMax);
}
