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

const folderName = /^inkwell-([0-9a-f]{8})-([0-9]{1,10})-([0-9]{1,16})-[0-9A-Za-z]{6}$/;

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

/**
 * Eight hex digits that stand for the machine's name: FNV-1a in 32 bits. It keeps machines apart,
 * not secrets, and the first use of a cryptographic hash costs a fifth of the start.
 */
function toHostId(host: string): string {
  let hash = 0x81_1c_9d_c5;
  for (const byte of Buffer.from(host)) hash = Math.imul(hash ^ byte, 0x01_00_01_93);
  return (hash >>> 0).toString(16).padStart(8, '0');
}
