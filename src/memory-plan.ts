/** What the process can hold in memory at most: the sum of all bounds, at what each costs. */

import { connectionBytes, documentsKeptMax } from './config-limits.ts';
import type { Config } from './config.ts';
import { MiB } from './settings.ts';

/** The program with all its parts loaded, and what V8 keeps free for new objects. */
const programBytes = 176 * MiB;
/** Two passwords that are being checked; a hash with the largest parameters takes 128 MiB. */
const passwordBytes = 2 * 16 * MiB;
/** A document of the average length that is kept: 200 bytes a character parsed, and its text. */
const documentBytes = 256 * 200 + 1_024;
/** The names of a stored file, and its places in maps and lists. */
const fileBytes = 1_024;
/** Pages that a database's driver keeps, where the records are not in memory. */
const driverBytes = 64 * MiB;

type Bounds = Pick<
  Config,
  | 'connectionsMax'
  | 'waitingBytesMax'
  | 'memoryStoreBytesMax'
  | 'storeUrl'
  | 'answerCacheBytesMax'
  | 'storedFilesMax'
>;

/** In bytes. */
export function sumOfBounds(bounds: Bounds): number {
  const isInMemory = bounds.storeUrl === '' || bounds.storeUrl === 'memory:';
  return (
    programBytes +
    passwordBytes +
    bounds.connectionsMax * connectionBytes +
    bounds.waitingBytesMax +
    (isInMemory ? bounds.memoryStoreBytesMax : driverBytes) +
    bounds.answerCacheBytesMax +
    documentsKeptMax * documentBytes +
    bounds.storedFilesMax * fileBytes
  );
}
