/** What the process can hold in memory at most: the sum of all bounds, at what each costs. */

import { connectionBytes, documentsKeptMax } from './config-limits.ts';
import type { Config } from './config.ts';
import { adminPoolBytes } from './memory-pool.ts';
import { MiB } from './settings.ts';

/** The program with all its parts loaded, and garbage that waits for its collection. */
const programBytes = 190 * MiB;
/** Two passwords that are being checked; a hash with the largest parameters takes 128 MiB. */
const passwordBytes = 2 * 16 * MiB;
/** A document of the average length that is kept: 200 bytes a character parsed, and its text. */
const documentBytes = 256 * 200 + 1_024;
/** Connections to ADMIN_PORT: of a few that watch. */
export const adminConnectionsMax = 100;
/** The names of a stored file, and its places in maps and lists. */
const fileBytes = 1_024;
/** Pages that a database's driver keeps, where the records are not in memory. */
const driverBytes = 64 * MiB;

const adminBytes = adminConnectionsMax * connectionBytes + adminPoolBytes;

/** V8's space for new objects at its largest, in bytes: it grew with version 13 (Node 24). */
export function newSpaceBytes(v8Version: string): number {
  return Number.parseInt(v8Version, 10) >= 13 ? 192 * MiB : 48 * MiB;
}

/** In bytes. `newSpace`: what `newSpaceBytes` says of the running V8. */
export function sumOfBounds(config: Config, newSpace: number): number {
  const isInMemory = config.storeUrl === '' || config.storeUrl === 'memory:';
  return (
    programBytes +
    newSpace +
    passwordBytes +
    config.connectionsMax * connectionBytes +
    config.waitingBytesMax +
    (config.adminPort === undefined ? 0 : adminBytes) +
    (isInMemory ? config.memoryStoreBytesMax : driverBytes) +
    config.answerCacheBytesMax +
    documentsKeptMax * documentBytes +
    config.storedFilesMax * fileBytes
  );
}
