/**
 * The maximum memory of the process: the sum of all limits, each with its cost.
 *
 * | what                          | bytes                      | source                           |
 * | ----------------------------- | -------------------------- | -------------------------------- |
 * | the loaded program            | 112 MiB                    | resident after a start, with     |
 * |                               |                            | GraphQL, and 50 MiB of Node      |
 * | buffers that are garbage      | 64 MiB                     | V8 collects after so many        |
 * | new space of V8               | 3 × 16 or 64 MiB           | two halves and large objects     |
 * | pages that it has freed       | 2/3 of the new space       | `--trace-gc-verbose`             |
 * | password checks               | 4 × 16 MiB                 | scrypt, 4 threads of libuv       |
 * | caches of tokens, logins, log | 14 MiB                     | their own bounds                 |
 * | connections                   | CONNECTIONS_MAX × 96 KiB   | `connectionBytes` in `config.ts` |
 * | requests                      | REQUEST_MEMORY_BYTES_MAX   | `memory-pool.ts` counts          |
 * | records in memory             | MEMORY_STORE_BYTES_MAX     | `store/memory-table.ts` counts   |
 * | or the driver of a database   | 64 MiB                     | its page cache                   |
 * | responses, documents, texts   | RESPONSE_CACHE_BYTES_MAX … | their caches count               |
 * | stored files                  | 10,000 × 1 KiB             | names and index entries          |
 *
 * Example: 1,000 connections take 1,000 × 96 KiB = 94 MiB, and on Node 20 the new space takes
 * 3 × 16 × 5/3 = 80 MiB.
 */

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
