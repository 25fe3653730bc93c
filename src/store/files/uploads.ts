/**
 * The store of uploaded files (Spec §4.4, R18): a folder and an index. The files of a request
 * become visible all at once or not at all, and a download gets one whole version of each file.
 * With an index in a database files outlive the process, and any number of nodes share them.
 *
 * A file is complete, and in a durable store flushed, before the index lists it; it is never
 * written to again. A file that the index does not list and that has not changed for a day is
 * garbage: no upload takes so long, and no other node or backup still reads it. In the folder of a
 * run, a replaced file goes after its last reader.
 */

import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { AppError, codeOf } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type {
  DurableFileIndex,
  FileIndex,
  FileLimits,
  ReplacedFile,
  StoredFile,
} from '../file-index.ts';
import { type Content, openContent, openDrain, writeFile } from './content.ts';
import { type FileOperations, toAppError } from './operations.ts';
import { dayMilliseconds, sweepFolder } from './sweep.ts';

/** The files of one request before they are stored. Call `close()` in any case. */
export interface Upload {
  /**
   * Writes one file as it arrives. Throws `storage_full` if the disk is full, `overloaded` if too
   * many files are open, `unavailable`, and the error of `content`.
   */
  write(storedName: string, content: AsyncIterable<readonly Buffer[]>): Promise<StoredFile>;
  /**
   * Makes these files visible at one moment; each replaces the file of its name. Throws the errors
   * of `FileIndex.commit`.
   */
  commit(files: readonly StoredFile[]): Promise<void>;
  /** Removes the files that were not committed. Never rejects. */
  close(): Promise<void>;
}

/** The stored files at one moment, in the order of their names' first storage (R2). */
export interface Snapshot {
  readonly files: readonly StoredFile[];
  /**
   * Opens a file, and returns its content or a range of it, which the caller must read or
   * `return()`. Rejects if the file is missing on the disk.
   */
  read(
    file: StoredFile,
    range?: { readonly start: number; readonly end: number },
  ): Promise<Content>;
  /** Lets replaced files be removed. Never rejects. */
  release(): Promise<void>;
}

export interface UploadsOptions extends FileLimits {
  readonly folder: string;
  readonly files: FileOperations;
  readonly index: FileIndex;
  /** The same index, if it outlives the process. */
  readonly durable?: DurableFileIndex;
  /** Returns unique names, across all nodes. */
  readonly createName: () => string;
  readonly log: Log;
}

/** A request that stores files after this time is refused: a node could count them as garbage. */
const uploadMillisecondsMax = dayMilliseconds / 2;
const sweepMilliseconds = 600_000;
/** How long a stop waits for a sweep. */
const closeMilliseconds = 1_000;
/** Disk space of an empty file. */
const emptyFileBytes = 4_096;

export class Uploads {
  readonly #options: UploadsOptions;
  readonly #timer: NodeJS.Timeout;
  /** Files of uploads in progress, by their names on disk, as everywhere here. */
  readonly #uncommitted = new Set<string>();
  /** How many snapshots have each file. */
  readonly #readers = new Map<string, number>();
  /** Replaced files that are kept for readers, and their sizes; the oldest first. */
  readonly #replaced = new Map<string, number>();
  #replacedBytes = 0;
  #drain: MessagePort | undefined;
  #lastSweep = Promise.resolve();
  #closed = false;

  constructor(options: UploadsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.sweep(), sweepMilliseconds).unref();
    void this.sweep();
  }

  begin(): Upload {
    const uncommitted = new Set<string>();
    const beganAt = performance.now();
    return {
      write: (storedName, content) => this.#write(storedName, content, uncommitted),
      commit: async (files) => {
        if (performance.now() - beganAt > uploadMillisecondsMax) {
          throw new AppError('request_timeout', 'The upload took more than 12 hours.');
        }
        await this.#commit(files, uncommitted);
      },
      close: async () => {
        await this.#removeAll(uncommitted);
        for (const name of uncommitted) this.#uncommitted.delete(name);
      },
    };
  }

  /**
   * Opens a snapshot of all stored files, or of the one with this name; the caller must release it.
   * Throws `unavailable` if the index is in a database that does not answer.
   */
  open(storedName?: string): MaybePromise<Snapshot> {
    this.#checkOpen();
    return andThen(this.#options.index.list(storedName), (files) => this.#toSnapshot(files));
  }

  /** Removes a file; open snapshots keep it. Does nothing if it was replaced or removed. */
  async remove(file: StoredFile): Promise<void> {
    this.#checkOpen();
    await this.#options.index.remove(file);
    await this.#retire([file]);
  }

  /** Removes garbage from the folder. Never rejects. */
  sweep(): Promise<void> {
    const isOver = (): boolean => this.#closed;
    this.#lastSweep = this.#lastSweep.then(() =>
      sweepFolder({ ...this.#options, own: new Set(this.#uncommitted), isOver }),
    );
    return this.#lastSweep;
  }

  /** Uploads in progress fail with `draining`. */
  async close(): Promise<void> {
    const { durable, files, folder } = this.#options;
    this.#closed = true;
    clearInterval(this.#timer);
    // Requests to a database that does not answer end with its connections.
    await Promise.race([this.#lastSweep, pause(closeMilliseconds, undefined, { ref: false })]);
    if (durable === undefined) await files.removeFolder(folder);
  }

  async #write(
    storedName: string,
    content: AsyncIterable<readonly Buffer[]>,
    uncommitted: Set<string>,
  ): Promise<StoredFile> {
    this.#checkOpen();
    const { files, durable, createName } = this.#options;
    // An index that is away refuses the upload before its files are on the disk.
    if (uncommitted.size === 0) await durable?.list(storedName);
    const temporaryName = `${createName()}.upload`;
    uncommitted.add(temporaryName);
    this.#uncommitted.add(temporaryName);
    this.#drain ??= openDrain();
    try {
      const path = this.#toPath(temporaryName);
      const options = { files, path, isSynced: durable !== undefined, drain: this.#drain };
      return { storedName, temporaryName, size: await writeFile(content, options) };
    } catch (error) {
      // If the store was closed, its folder may be gone, which explains the error.
      this.#checkOpen();
      throw toAppError(error);
    }
  }

  async #commit(given: readonly StoredFile[], uncommitted: Set<string>): Promise<void> {
    this.#checkOpen();
    const { folder, files, index, durable } = this.#options;
    // Of two files with one name the later one is stored; `close()` removes the other.
    const last = [...new Map(given.map((file) => [file.storedName, file])).values()];
    if (last.length === 0) return;
    if (durable !== undefined) {
      await files.syncFolder(folder).catch((error: unknown) => {
        throw toAppError(error);
      });
    }
    const release = (): void => {
      for (const { temporaryName } of last) {
        uncommitted.delete(temporaryName);
        this.#uncommitted.delete(temporaryName);
      }
    };
    let replaced: readonly ReplacedFile[] = [];
    try {
      replaced = await index.commit(last);
    } catch (error) {
      // The files may be stored. If they are not, they are garbage a day later.
      if (durable !== undefined && codeOf(error) !== 'storage_full') release();
      throw error;
    }
    release();
    await this.#retire(replaced);
  }

  /**
   * Removes replaced files, or keeps them for their readers: in the folder of a run until they have
   * read, else for a day. No more are kept than may be stored.
   */
  async #retire(files: readonly ReplacedFile[]): Promise<void> {
    const { filesMax, bytesMax, durable } = this.#options;
    const unused: string[] = [];
    for (const { temporaryName, size } of files) {
      if (this.#replaced.has(temporaryName)) continue;
      if (durable !== undefined) {
        // The day begins now. A failure shortens it.
        await this.#options.files.touch(this.#toPath(temporaryName)).catch(() => undefined);
      } else if (!this.#readers.has(temporaryName)) {
        unused.push(temporaryName);
        continue;
      }
      this.#replaced.set(temporaryName, size + emptyFileBytes);
      this.#replacedBytes += size + emptyFileBytes;
    }
    for (const name of this.#replaced.keys()) {
      if (this.#replacedBytes <= bytesMax && this.#replaced.size <= filesMax) break;
      this.#forget(name);
      unused.push(name);
    }
    await this.#removeAll(unused);
  }

  #forget(replaced: string): boolean {
    this.#replacedBytes -= this.#replaced.get(replaced) ?? 0;
    return this.#replaced.delete(replaced);
  }

  #toSnapshot(listed: readonly StoredFile[]): Snapshot {
    const { files, durable } = this.#options;
    for (const { temporaryName: name } of listed) {
      this.#readers.set(name, (this.#readers.get(name) ?? 0) + 1);
    }
    let released = false;
    return {
      files: listed,
      read: ({ temporaryName, size }, range = { start: 0, end: size }) =>
        openContent(files, this.#toPath(temporaryName), range),
      release: async () => {
        if (released) return;
        released = true;
        const unused: string[] = [];
        for (const { temporaryName: name } of listed) {
          const left = (this.#readers.get(name) ?? 1) - 1;
          if (left > 0) this.#readers.set(name, left);
          else {
            this.#readers.delete(name);
            if (durable === undefined && this.#forget(name)) unused.push(name);
          }
        }
        await this.#removeAll(unused);
      },
    };
  }

  /** What cannot be removed now is garbage a day later. */
  async #removeAll(names: Iterable<string>): Promise<void> {
    for (const name of names) {
      await this.#options.files.remove(this.#toPath(name)).catch(() => undefined);
    }
  }

  #toPath(temporaryName: string): string {
    return join(this.#options.folder, temporaryName);
  }

  #checkOpen(): void {
    if (this.#closed) throw new AppError('draining', 'The service is stopping.', { close: true });
  }
}
