/** The maximum memory of the process: the sum of all limits, each with its cost. */

import { connectionBytes, documentsBytesMax, persistedTextsBytesMax } from './config.ts';
import type { Config } from './config.ts';
import { adminPoolBytes } from './memory-pool.ts';
import { MiB } from './settings.ts';

/** The loaded program, and garbage that is not collected yet. */
const programBytes = 176 * MiB;
/** Two password checks; a hash with the largest parameters takes 128 MiB instead. */
const passwordBytes = 2 * 16 * MiB;
/** Connections to ADMIN_PORT: monitoring needs few. */
export const adminConnectionsMax = 100;
/** Names and index entries of a stored file. */
const fileBytes = 1_024;
/** Verified tokens and failed logins (4 MiB each), unread log lines and pages (3 each). */
const cachesBytes = 14 * MiB;
/** Page cache of a database driver, if the records are not in memory. */
const driverBytes = 64 * MiB;

const adminBytes = adminConnectionsMax * connectionBytes + adminPoolBytes;

/**
 * The maximum of V8's new space in bytes. Since version 13 (Node 24) it is larger, and so is what
 * survives in the old space until the next full collection: 12 MiB more are counted for it.
 */
export function newSpaceBytes(v8Version: string): number {
  return Number.parseInt(v8Version, 10) >= 13 ? 204 * MiB : 48 * MiB;
}

/** Bytes. `newSpace` comes from `newSpaceBytes`. */
export function sumOfBounds(config: Config, newSpace: number): number {
  const isInMemory = config.storeUrl === '' || config.storeUrl === 'memory:';
  return (
    programBytes +
    // A third more: objects that survived it, and are garbage until the next full collection.
    (newSpace * 4) / 3 +
    passwordBytes +
    cachesBytes +
    config.connectionsMax * connectionBytes +
    config.waitingBytesMax +
    (config.adminPort === undefined ? 0 : adminBytes) +
    (isInMemory ? config.memoryStoreBytesMax : driverBytes) +
    config.answerCacheBytesMax +
    documentsBytesMax +
    persistedTextsBytesMax +
    config.storedFilesMax * fileBytes
  );
}
