/**
 * The store of uploaded files: a folder and an index. In a store of one run the index is in memory,
 * and a replaced file is removed after its last reader. With an index in a database, files outlive
 * the process, and any number of nodes share them (Spec §4.4, R18).
 *
 * In a durable store a file is flushed before it is in the index, and never written to again. A
 * replaced file is kept for `graceSeconds`, and longer while a node reports that it is read; then
 * any node removes it. A download thus gets one whole version of each file. If its node cannot
 * report for that long, or too many files are replaced, the download is cut, never mixed.
 */

import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import type { ByteSource } from '../../byte-source.ts';
import { AppError, codeOf, toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import { type FileIndex, type FileList, removableMax } from '../file-index.ts';
import {
  type Snapshot,
  stopping,
  type Upload,
  type Uploads,
  type WrittenFile,
} from '../uploads.ts';
import { checkUploads } from './check.ts';
import { openDrain, readContent, removeFiles, writeFile } from './content.ts';
import { type FileOperations, toAppError } from './operations.ts';

export interface IndexedUploadsOptions {
  readonly folder: string;
  readonly files: FileOperations;
  readonly index: FileIndex;
  /** Returns unique names, across all nodes. */
  readonly createName: () => string;
  readonly log: Log;
  /** The minimum time that a replaced file is kept; undefined: a store of one run. */
  readonly graceSeconds?: number;
}

/** Reports of what is being read, per grace period. */
const sweepsPerGrace = 10;
/** After this many replaced files a sweep starts before its timer fires. */
const replacedMax = 100;
/** How long a stop waits for work that belongs to no request. */
const closeMilliseconds = 1_000;
/** Files of commits with an unknown outcome. If there are more, uploads are refused. */
const doubtfulMax = 1_000;

export class IndexedUploads implements Uploads {
  /** Settles when the check at the start has ended. Never rejects. */
  readonly checked: Promise<void> = Promise.resolve();
  readonly #options: IndexedUploadsOptions;
  readonly #isDurable: boolean;
  readonly #timer: NodeJS.Timeout | undefined;
  #drain: MessagePort | undefined;
  /** The number of downloads that read the list of each change. */
  readonly #reading = new Map<number, number>();
  /**
   * Names on disk of files that may or may not be in the index, because the outcome of their commit
   * is unknown, and of uncommitted files that could not be removed.
   */
  readonly #doubtful = new Set<string>();
  /** Names given during the check at the start; undefined after it. */
  #given: Set<string> | undefined;
  /** Files that this node replaced since its last sweep. */
  #replaced = 0;
  /** Replaced files that the last sweep could not remove. */
  #unremoved = 0;
  /** The last sweep requested; sweeps run one after the other. */
  #lastSweep: Promise<void> = Promise.resolve();
  /** The sweep that has not started yet: further requests share it. */
  #nextSweep: Promise<void> | undefined;
  #closed = false;

  constructor(options: IndexedUploadsOptions) {
    const { graceSeconds } = options;
    this.#options = options;
    this.#isDurable = graceSeconds !== undefined;
    if (graceSeconds === undefined) return;
    const milliseconds = Math.max(1, (graceSeconds * 1000) / sweepsPerGrace);
    this.#timer = setInterval(() => void this.sweep(), milliseconds).unref();
    this.#given = new Set();
    this.checked = checkUploads({
      ...options,
      isOwn: (name) => this.#given?.has(name) === true,
      isOver: () => this.#closed,
    }).finally(() => {
      this.#given = undefined;
    });
  }

  begin(): Upload {
    const uncommitted = new Set<string>();
    return {
      write: (storedName, content) => this.#write(storedName, content, uncommitted),
      commit: (files) => this.#commit(files, uncommitted),
      close: () => this.#discard(uncommitted),
    };
  }

  open(storedName?: string): MaybePromise<Snapshot> {
    this.#checkOpen();
    return andThen(this.#options.index.list(storedName), (list) => this.#hold(list));
  }

  async remove(file: WrittenFile): Promise<void> {
    this.#checkOpen();
    await this.#options.index.remove(file);
    this.#replaced += 1;
    await this.#sweepRun();
  }

  /**
   * Removes files that are no longer needed, including those replaced during an earlier sweep.
   * Never rejects.
   */
  sweep(): Promise<void> {
    this.#nextSweep ??= this.#lastSweep.then(() => {
      this.#nextSweep = undefined;
      return this.#sweepOnce();
    });
    this.#lastSweep = this.#nextSweep;
    return this.#lastSweep;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    // Requests to a database that does not answer end with its connections.
    const end = pause(closeMilliseconds, undefined, { ref: false });
    await Promise.race([Promise.all([this.checked, this.#lastSweep]), end]);
    if (!this.#isDurable) await this.#options.files.removeFolder(this.#options.folder);
  }

  async #write(
    storedName: string,
    content: ByteSource,
    uncommitted: Set<string>,
  ): Promise<WrittenFile> {
    const { files } = this.#options;
    const temporaryName = this.#createName();
    uncommitted.add(temporaryName);
    this.#drain ??= openDrain();
    try {
      const path = this.#toPath(temporaryName);
      const options = { files, path, isSynced: this.#isDurable, drain: this.#drain };
      return { storedName, temporaryName, size: await writeFile(content, options) };
    } catch (error) {
      // If the store was closed, its folder may be gone, which explains the error.
      this.#checkOpen();
      throw toAppError(error);
    }
  }

  #createName(): string {
    this.#checkOpen();
    if (this.#doubtful.size >= doubtfulMax) {
      void this.sweep();
      throw new AppError('unavailable', 'The database does not answer.', { retryAfterSeconds: 2 });
    }
    if (this.#unremoved >= removableMax) {
      void this.sweep();
      throw new AppError('storage_full', 'Files that were replaced cannot be removed.');
    }
    const name = `${this.#options.createName()}.upload`;
    this.#given?.add(name);
    return name;
  }

  async #commit(given: readonly WrittenFile[], uncommitted: Set<string>): Promise<void> {
    this.#checkOpen();
    const { folder, files, index } = this.#options;
    // Of two files with one name the later one is stored; `close()` removes the other.
    const kept = [...new Map(given.map((file) => [file.storedName, file])).values()];
    if (kept.length === 0) return;
    if (this.#isDurable) {
      await files.syncFolder(folder).catch((error: unknown) => {
        throw toAppError(error);
      });
    }
    for (const { temporaryName } of kept) uncommitted.delete(temporaryName);
    try {
      const replaced = await index.commit(kept);
      // `#replaced` is read after the await, because other commits may have changed it.
      this.#replaced += replaced;
    } catch (error) {
      const isRefused = error instanceof AppError && error.code === 'storage_full';
      const names = isRefused ? uncommitted : this.#doubtful;
      for (const { temporaryName } of kept) names.add(temporaryName);
      throw error;
    }
    if (this.#replaced >= replacedMax || this.#doubtful.size > 0) void this.sweep();
  }

  async #discard(uncommitted: Set<string>): Promise<void> {
    const { left } = await this.#remove([...uncommitted]);
    uncommitted.clear();
    for (const name of left) this.#doubtful.add(name);
    await this.#sweepRun();
  }

  /** In a store of one run, replaced files are removed at once. */
  async #sweepRun(): Promise<void> {
    if (this.#isDurable || this.#closed) return;
    await this.sweep();
  }

  #hold({ files: listed, change }: FileList): Snapshot {
    const { files } = this.#options;
    this.#reading.set(change, (this.#reading.get(change) ?? 0) + 1);
    let released = false;
    return {
      files: listed,
      read: ({ temporaryName, size }, range = { start: 0, end: size }) =>
        readContent(files, this.#toPath(temporaryName), range),
      release: async () => {
        if (released) return;
        released = true;
        const readers = this.#reading.get(change) ?? 0;
        if (readers <= 1) this.#reading.delete(change);
        else this.#reading.set(change, readers - 1);
        await this.#sweepRun();
      },
    };
  }

  async #sweepOnce(): Promise<void> {
    try {
      if (this.#closed) return;
      this.#replaced = 0;
      await this.#settleDoubts();
      await this.#removeReplaced();
    } catch (error) {
      // The driver has logged the outage; the next sweep tries again.
      const code = codeOf(error);
      if (this.#closed || code === 'overloaded' || code === 'unavailable') return;
      this.#options.log('warn', 'replaced files were not removed', { reason: toReason(error) });
    }
  }

  async #settleDoubts(): Promise<void> {
    const names = [...this.#doubtful];
    if (names.length === 0) return;
    const never = await this.#options.index.abandon(names);
    for (const name of names) this.#doubtful.delete(name);
    // Files that cannot be removed now are removed like replaced ones.
    await this.#remove(never);
  }

  async #removeReplaced(): Promise<void> {
    const { index } = this.#options;
    for (let isMore = true; isMore && !this.#closed;) {
      const { gone, left } = await this.#remove(await index.removable(this.#reading.keys()));
      if (gone.length > 0) await index.forget(gone);
      this.#unremoved = left.length;
      isMore = gone.length === removableMax;
    }
  }

  #remove(names: readonly string[]): ReturnType<typeof removeFiles> {
    const { files, folder } = this.#options;
    return removeFiles(files, folder, names);
  }

  #toPath(temporaryName: string): string {
    return join(this.#options.folder, temporaryName);
  }

  #checkOpen(): void {
    if (this.#closed) throw stopping();
  }
}
