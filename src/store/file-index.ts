/**
 * The port of the durable index of stored files: which file on disk stands for which name, and
 * which files were replaced but may still be read, by any node. A method is one atomic act,
 * as in store.ts; each throws `unavailable` where the database does not answer.
 */

import type { MaybePromise } from '../maybe-promise.ts';
import type { WrittenFile } from './uploads.ts';

/** The stored files of one moment. */
export interface FileList {
  /** In the order in which they came; a replaced one keeps its place (R2). */
  readonly files: readonly WrittenFile[];
  /** The number of the last commit that is in it. */
  readonly change: number;
}

export interface FileIndex {
  /** With a name: of the file of this name alone. */
  list(storedName?: string): MaybePromise<FileList>;
  /**
   * All of them at one moment, each in place of the one of its name; the stored names differ.
   * Gives how many were replaced. Throws `storage_full` where more than `filesMax` would be kept,
   * or more than `bytesMax` in all: then nothing has changed. After any other error they may be
   * kept, or be kept later.
   */
  commit(files: readonly WrittenFile[]): MaybePromise<number>;
  /** Takes a file out of the list, as if it were replaced; fine where it is in none. */
  remove(file: WrittenFile): MaybePromise<void>;
  /**
   * Settles whether these files on disk, whose commit has failed, are stored: those that are not
   * now never will be. Gives the names of the latter.
   */
  abandon(temporaryNames: readonly string[]): MaybePromise<readonly string[]>;
  /**
   * Names of files on disk that were replaced `graceSeconds` ago and are in no list that is being
   * read, `removableMax` at most. `reading` has the changes of the lists that are being read here:
   * what is in them is kept for `graceSeconds` from now. Beyond `filesMax` replaced files the
   * oldest go at once.
   */
  removable(reading: Iterable<number>): MaybePromise<readonly string[]>;
  /** Replaced files whose removal from the disk is done. */
  forget(temporaryNames: readonly string[]): MaybePromise<void>;
  /** The names on disk of all files that were replaced, or abandoned, and not yet forgotten. */
  replaced(): MaybePromise<readonly string[]>;
}

export interface FileIndexOptions {
  readonly filesMax: number;
  /** Replaced files do not count. */
  readonly bytesMax: number;
  readonly graceSeconds: number;
}

export const removableMax = 1_000;

/** Commits whose lists are being read, as ranges from the first to the last. */
export type Range = readonly [first: number, last: number];

const rangesMax = 100;

/** Many are joined to a few ranges, which may hold more than they: then more is kept for them. */
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
