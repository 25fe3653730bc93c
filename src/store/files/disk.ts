/** Uploaded files on the disk: written as their content arrives, flushed, and read in pieces. */

import { close, constants, open, read, writev } from 'node:fs';
import { stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { AppError, codeOf, overloaded, toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { type OwnedBuffers, releaseBuffers } from '../../owned-buffers.ts';
import { allow, flush } from '../flush.ts';

/** Size of one read from disk. */
const readBytesMax = 64 * 1024;
const noBytes = Buffer.alloc(0);
export const dayMilliseconds = 86_400_000;

/**
 * Creates a file that only this user can read, and writes `content` to it as it arrives.
 * `isSynced`: flushes the file to the disk before it is closed. Returns the size. Throws errors of
 * the file system and of `content`.
 */
export async function writeFile(
  path: string,
  content: AsyncIterable<OwnedBuffers>,
  isSynced: boolean,
): Promise<number> {
  let size = 0;
  const file = await promisify(open)(path, 'wx', 0o600);
  try {
    for await (const batch of content) {
      size += await writeWhole(file, batch);
      releaseBuffers(batch);
    }
    if (isSynced) await flush(path, constants.O_RDWR);
  } finally {
    await promisify(close)(file);
  }
  return size;
}

/** If the disk is nearly full, a write may take only a part; the rest is then copied. */
async function writeWhole(file: number, batch: OwnedBuffers): Promise<number> {
  let rest = batch;
  let size = 0;
  for (;;) {
    const left = rest.reduce((sum, { length }) => sum + length, 0);
    if (left === 0) return size;
    const { bytesWritten } = await promisify(writev)(file, rest);
    if (bytesWritten === 0) throw new Error('the file system wrote nothing and reported no error');
    size += bytesWritten;
    rest = bytesWritten < left ? [Buffer.concat(rest).subarray(bytesWritten)] : [];
  }
}

export type Content = AsyncGenerator<Buffer, void, undefined>;

/** A range in bytes, without the byte at `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Opens a file, and returns the bytes of a range of it, which the caller must read or `return()`.
 * The bytes end with an error if the file is shorter.
 */
export async function openContent(path: string, range: ByteRange): Promise<Content> {
  const content = readContent(path, range);
  // The file is open at the first value. A generator that was never started would not close it.
  await content.next();
  return content;
}

async function* readContent(path: string, { start, end }: ByteRange): Content {
  const file = await promisify(open)(path, 'r');
  try {
    yield noBytes;
    let position = start;
    while (position < end) {
      const chunk = Buffer.allocUnsafe(Math.min(readBytesMax, end - position));
      const { bytesRead } = await promisify(read)(file, chunk, 0, chunk.length, position);
      if (bytesRead === 0) throw new Error('a stored file is shorter than it was');
      position += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await promisify(close)(file);
  }
}

/** True for the names that the store gives. Other files are not touched. */
export function isUpload(name: string): boolean {
  return name.endsWith('.upload');
}

/** True if a file or folder exists and has not changed for a day. */
export async function isDayOld(path: string): Promise<boolean> {
  const found = await stat(path).catch(allow('ENOENT'));
  return found !== undefined && Date.now() - found.mtimeMs > dayMilliseconds;
}

/** A folder that is not mounted or not this user's any more, or a disk that fails. */
const away: readonly string[] = [
  'EACCES',
  'EIO',
  'ENODEV',
  'ENOENT',
  'ENOTCONN',
  'ENOTDIR',
  'EPERM',
  'EROFS',
  'ESTALE',
];

/**
 * Throws an error of the file system as one that a client can react to, if there is one. With a log
 * that also holds for a folder that is away, with the reason in the log.
 */
export function throwAppError(log?: Log): (error: unknown) => never {
  return (error) => {
    const code = codeOf(error) ?? '';
    if (['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code)) {
      throw new AppError('storage_full', 'There is no space left for uploaded files.');
    }
    if (['EMFILE', 'ENFILE'].includes(code)) throw overloaded('Too many files are open.');
    if (log === undefined || !away.includes(code)) throw error;
    log('error', 'the folder of uploads failed', { reason: toReason(error) });
    throw new AppError('unavailable', 'The folder of uploads failed.', { retryAfterSeconds: 2 });
  };
}
