/**
 * Files that were replaced or removed. They go when nobody reads, or after a time, or before it,
 * the oldest first, while there are more of them than may be stored.
 */

import type { FileLimits, ReplacedFile } from '../file-index.ts';

/** Disk space of an empty file. */
const emptyFileBytes = 4_096;

export class RetiredFiles {
  readonly #limits: FileLimits;
  /** How long they stay while somebody reads. */
  readonly #keptMilliseconds: number;
  #readers = 0;
  /** By their names on disk, the oldest first. */
  readonly #files = new Map<string, { readonly bytes: number; readonly since: number }>();
  #bytes = 0;

  constructor(limits: FileLimits, keptMilliseconds: number) {
    this.#limits = limits;
    this.#keptMilliseconds = keptMilliseconds;
  }

  /** Returns a function that ends the reader. */
  beginReader(): () => void {
    this.#readers += 1;
    return () => {
      this.#readers -= 1;
    };
  }

  add({ temporaryName, size }: ReplacedFile): void {
    this.delete(temporaryName);
    const bytes = size + emptyFileBytes;
    this.#files.set(temporaryName, { bytes, since: performance.now() });
    this.#bytes += bytes;
  }

  delete(name: string): void {
    this.#bytes -= this.#files.get(name)?.bytes ?? 0;
    this.#files.delete(name);
  }

  /** Deletes and returns what has to go. */
  takeOld(): readonly string[] {
    const { filesMax, bytesMax } = this.#limits;
    const kept = this.#readers > 0 ? this.#keptMilliseconds : 0;
    const names: string[] = [];
    for (const [name, { since }] of this.#files) {
      const isOver = this.#bytes > bytesMax || this.#files.size > filesMax;
      if (!isOver && performance.now() - since < kept) break;
      this.delete(name);
      names.push(name);
    }
    return names;
  }
}
