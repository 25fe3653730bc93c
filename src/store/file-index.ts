/**
 * The port of the durable index of stored files. It maps names to files on disk, and keeps the
 * replaced files that a node may still read. A method is one atomic operation, as in store.ts; each
 * throws `unavailable` if the database does not answer.
 */

import type { MaybePromise } from '../maybe-promise.ts';
import type { WrittenFile } from './uploads.ts';

/** The stored files at one moment. */
export interface FileList {
  /** In the order in which their names were first stored: a replacement keeps the position (R2). */
  readonly files: readonly WrittenFile[];
  /** The number of the last commit included. */
  readonly change: number;
}

export interface FileIndex {
  /** Lists all files, or only the file of this name. */
  list(storedName?: string): MaybePromise<FileList>;
  /**
   * Stores all files at one moment; each replaces the file of its name. The stored names differ.
   * Returns how many were replaced. Throws `storage_full` if more than `filesMax` files or
   * `bytesMax` bytes would be stored; then nothing changes. After any other error they may be
   * stored, now or later.
   */
  commit(files: readonly WrittenFile[]): MaybePromise<number>;
  /** Removes a file, as if it were replaced. Does nothing if it is not listed. */
  remove(file: WrittenFile): MaybePromise<void>;
  /**
   * Ends the doubt about files on disk whose commit failed: those that are not stored now never
   * will be. Returns the names of the latter.
   */
  abandon(temporaryNames: readonly string[]): MaybePromise<readonly string[]>;
  /**
   * Returns up to `removableMax` names on disk of files that were replaced `graceSeconds` ago and
   * that no node is reading. `reading` has the `change` of each list that is being read here: its
   * files are kept for `graceSeconds` from now. If more than `filesMax` files are replaced, the
   * oldest are returned at once.
   */
  removable(reading: Iterable<number>): MaybePromise<readonly string[]>;
  /** Forgets replaced files that were removed from the disk. */
  forget(temporaryNames: readonly string[]): MaybePromise<void>;
  /** The names on disk of all replaced or abandoned files that are not forgotten. */
  replaced(): MaybePromise<readonly string[]>;
}

export interface FileIndexOptions {
  readonly filesMax: number;
  /** Replaced files do not count. */
  readonly bytesMax: number;
  readonly graceSeconds: number;
}

export const removableMax = 1_000;

/** The changes of the lists being read, as ranges from first to last. */
export type Range = readonly [first: number, last: number];

const rangesMax = 100;

/** Merges changes to a few ranges, which may include more: their files are kept too. */
export function toRanges(changes: Iterable<number>): readonly Range[] {
  const sorted = [...changes].toSorted((a, b) => a - b);
  const size = Math.ceil(sorted.length / rangesMax);
  const ranges: Range[] = [];
  for (let at = 0; at < sorted.length; at += size) {
    const part = sorted.slice(at, at + size);
    ranges.push([part[0] ?? 0, part.at(-1) ?? 0]);
  }
  return ranges;
}
