/** The maximum memory of the process: the sum of all limits, each with its cost. */

import {
  type Config,
  connectionBytes,
  documentsBytesMax,
  persistedTextsBytesMax,
} from './config.ts';
import { adminPoolBytes } from './memory-pool.ts';
import { MiB } from './settings.ts';

/** The loaded program: 50 MiB of Node's code, and its objects. */
const programBytes = 112 * MiB;
/** Buffers that are garbage: V8 starts a collection when so many bytes of them have come. */
const garbageBytes = 64 * MiB;
/**
 * Each of libuv's four threads keeps the memory of its last password check, though only two run at
 * a time; a hash with the largest parameters takes 128 MiB instead of 16.
 */
const passwordBytes = 4 * 16 * MiB;
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
 * The maximum of V8's new space in bytes: two halves, and large objects as much as one of them,
 * which is 64 MiB since version 13 (Node 24), and 16 before.
 */
export function newSpaceBytes(v8Version: string): number {
  return 3 * (Number.parseInt(v8Version, 10) >= 13 ? 64 : 16) * MiB;
}

/** Bytes. `newSpace` comes from `newSpaceBytes`. */
export function sumOfBounds(config: Config, newSpace: number): number {
  const isInMemory = config.storeUrl === '' || config.storeUrl === 'memory:';
  return (
    programBytes +
    garbageBytes +
    // V8 keeps the pages that a collection has freed, as many as both halves of the new space have
    // (`--trace-gc-verbose` names them), beside the new space itself.
    (newSpace * 5) / 3 +
    passwordBytes +
    cachesBytes +
    config.connectionsMax * connectionBytes +
    config.requestMemoryBytesMax +
    (config.adminPort === undefined ? 0 : adminBytes) +
    (isInMemory ? config.memoryStoreBytesMax : driverBytes) +
    config.responseCacheBytesMax +
    documentsBytesMax +
    persistedTextsBytesMax +
    config.storedFilesMax * fileBytes
  );
}
