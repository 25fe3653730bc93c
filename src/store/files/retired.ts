/**
 * Files that were replaced or removed, while somebody may still read them.
 *
 * 1. Each reader has a number; later readers have larger ones.
 * 2. A file is retired with the number of the last reader that can have it.
 * 3. It may go when every reader up to this number has ended. Numbers only grow, so the oldest
 *    open number decides, and the files retired first go first.
 * 4. Beyond the limits the oldest go although they are read.
 *
 *     readers 1 and 2 begin, a is retired (2), reader 3 begins, b is retired (3)
 *     reader 2 ends: the oldest open number is 1, both files stay
 *     reader 1 ends: the oldest open number is 3, a may go
 *     reader 3 ends: b may go
 */

import type { FileLimits, ReplacedFile } from '../file-index.ts';

/** Disk space of an empty file. */
const emptyFileBytes = 4_096;

/** Files have their names on disk as keys. */
export class RetiredFiles {
  readonly #limits: FileLimits;
  /** The numbers of the open readers, in their order. */
  readonly #readers = new Set<number>();
  #lastReader = 0;
  readonly #files = new Map<string, { readonly bytes: number; readonly lastReader: number }>();
  #bytes = 0;

  constructor(limits: FileLimits) {
    this.#limits = limits;
  }

  /** Returns a function that ends the reader. */
  beginReader(): () => void {
    const number = (this.#lastReader += 1);
    this.#readers.add(number);
    return () => void this.#readers.delete(number);
  }

  /** Does nothing with a file that is retired. */
  add({ temporaryName, size }: ReplacedFile): void {
    if (this.#files.has(temporaryName)) return;
    const bytes = size + emptyFileBytes;
    this.#files.set(temporaryName, { bytes, lastReader: this.#lastReader });
    this.#bytes += bytes;
  }

  delete(name: string): void {
    this.#bytes -= this.#files.get(name)?.bytes ?? 0;
    this.#files.delete(name);
  }

  /** Deletes and returns what may go. */
  takeUnread(): readonly string[] {
    const { filesMax, bytesMax } = this.#limits;
    const [oldest = Infinity] = this.#readers;
    const names: string[] = [];
    for (const [name, { lastReader }] of this.#files) {
      const isOver = this.#bytes > bytesMax || this.#files.size > filesMax;
      if (lastReader >= oldest && !isOver) break;
      this.delete(name);
      names.push(name);
    }
    return names;
  }
}
