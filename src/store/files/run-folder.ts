/**
 * The folder of one run (Spec §4.4 rule 1, R18). Its name identifies the process, so that folders
 * of ended runs can be removed, and no others.
 */

import { join } from 'node:path';
import { codeOf } from '../../errors.ts';
import type { FileOperations } from './operations.ts';

/** Identifies a process among all that have created a folder in the same place. */
export interface Run {
  /** The host name: processes of other hosts cannot be checked. */
  readonly host: string;
  readonly pid: number;
  /** Milliseconds since 1970; distinguishes processes that had the same process id. */
  readonly startedAt: number;
  isRunning(pid: number): boolean;
}

/** The hex form of 64 bytes, the maximum length of a host name on Linux. */
const hostIdLengthMax = 128;

const folderName = /^inkwell-([0-9a-f]{0,128})-([0-9]{1,10})-([0-9]{1,16})-[0-9A-Za-z]{6}$/;

/** Creates the folder of this run in `directory`; returns its path. Throws a one-line Error. */
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

/** Removes folders of ended runs on this host. Failures are ignored. */
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
  // The same process id at another time: an earlier process, as after a container's restart.
  if (Number(pid) === run.pid) return Number(startedAt) !== Math.floor(run.startedAt);
  return !run.isRunning(Number(pid));
}

/** The host name in hex, truncated to the length that a folder name allows. */
function toHostId(host: string): string {
  return Buffer.from(host).toString('hex').slice(0, hostIdLengthMax);
}
