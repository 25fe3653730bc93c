/**
 * The store of uploaded files (Spec §4.4, R18): a folder and an index. With an index in a database
 * the files outlive the process, and any number of nodes share them.
 *
 * 1. A file is written under a name made here and, in a durable store, flushed.
 * 2. Then one commit of the index lists all files of a request, or none. Replacing a file changes
 *    only the index: a listed file is never written to again.
 * 3. A list has the files that the index listed at one moment. So a download gets one whole version
 *    of each file.
 * 4. A file that was replaced or removed goes at once; while somebody reads (`keepReplaced`), an
 *    hour later at most; in a durable store after a day, because other nodes may read it.
 * 5. A file that the index does not list and that has not changed for a day is garbage, whichever
 *    process left it: no upload takes so long, and no other node or backup still reads it.
 *
 *     a request stores `a`: 1.upload is written; the index has a → 1.upload
 *     a download begins: its list has a → 1.upload
 *     a request stores `a` again: 2.upload is written; the index has a → 2.upload
 *     the download reads 1.upload; when it has ended, or a day later, 1.upload is removed
 */

import { mkdir, opendir, rm, unlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, codeOf, invalidBody, toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { OwnedBuffers } from '../../owned-buffers.ts';
import { allow, flushFolder } from '../flush.ts';
import { isRepeated } from '../once.ts';
import type {
  CommitOptions,
  FileIndex,
  FileLimits,
  ListedFile,
  ReplacedFile,
  StoredFile,
} from '../file-index.ts';
import {
  type Changed,
  type Once,
  type Page,
  pageRecordsMax,
  type Repeated,
  type Requests,
} from '../store.ts';
import {
  type Content,
  dayMilliseconds,
  isDayOld,
  isUpload,
  openContent,
  throwAppError,
  writeFile,
} from './disk.ts';
import { RetiredFiles } from './retired.ts';

/** The files of one request before they are stored. Call `close()` in any case. */
export interface Upload {
  /**
   * Writes one file as it arrives. Throws `invalid_body` for a second file of one name, of which
   * one would be lost (R18), `storage_full` if the disk is full, `overloaded` if too many files are
   * open, `unavailable`, and the error of `content`.
   */
  write(storedName: string, content: AsyncIterable<OwnedBuffers>): Promise<StoredFile>;
  /**
   * Makes these files visible at one moment; each replaces the file of its name. Returns a value if
   * the same was done before (R40); `close()` removes these files then. Throws the errors of
   * `FileIndex.commit`.
   */
  commit(files: readonly StoredFile[], options?: CommitOptions): Promise<Repeated | undefined>;
  /** Removes the files that were not committed. Never rejects. */
  close(): Promise<void>;
}

export interface UploadsOptions extends FileLimits {
  readonly folder: string;
  readonly index: FileIndex;
  /** The keys of writes in the store that the index is in. */
  readonly requests: Requests;
  /** True if the index outlives the process. */
  readonly isDurable: boolean;
  /** Returns unique names, across all nodes. */
  readonly createName: () => string;
  readonly log: Log;
}

/** How long a download in the folder of a run may take to reach a file that is replaced. */
const readMillisecondsMax = 3_600_000;
/** A request that stores files after this time is refused: they could be counted as garbage. */
const uploadMillisecondsMax = dayMilliseconds / 2;
const sweepMilliseconds = 600_000;
/** Errors of a commit after which the files are not stored. */
const notStored: readonly unknown[] = [
  'storage_full',
  'precondition_failed',
  'forbidden',
  'idempotency_key_reused',
  'request_in_progress',
];

/** Call `close()` in any case. */
export class Uploads {
  readonly #options: UploadsOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #retired: RetiredFiles;
  #closed = false;

  constructor(options: UploadsOptions) {
    this.#options = options;
    // In a durable store the sweep removes them, by their times on the disk.
    this.#retired = new RetiredFiles(options, options.isDurable ? Infinity : readMillisecondsMax);
    if (options.isDurable) this.keepReplaced();
    this.#timer = setInterval(() => void this.sweep(), sweepMilliseconds).unref();
    void this.sweep();
  }

  begin(): Upload {
    const { folder, index, isDurable, createName, log } = this.#options;
    const uncommitted = new Set<string>();
    const names = new Set<string>();
    const beganAt = performance.now();
    return {
      write: async (storedName, content) => {
        this.#checkOpen();
        if (names.has(storedName)) {
          const message = `may not hold two files with the name ${JSON.stringify(storedName)}`;
          throw invalidBody([{ pointer: '', message }]);
        }
        names.add(storedName);
        // An index that is away refuses the upload before its files are on the disk.
        if (isDurable && uncommitted.size === 0) await index.list(storedName);
        const temporaryName = `${createName()}.upload`;
        uncommitted.add(temporaryName);
        try {
          const path = this.#toPath(temporaryName);
          const write = () => writeFile(path, content, isDurable);
          const size = await write().catch((error: unknown) => this.#remake(error).then(write));
          return { storedName, temporaryName, size };
        } catch (error) {
          // If the store was closed, its folder may be gone, which explains the error.
          this.#checkOpen();
          return throwAppError(log)(error);
        }
      },
      commit: async (files, options) => {
        this.#checkOpen();
        if (performance.now() - beganAt > uploadMillisecondsMax) {
          throw new AppError('request_timeout', 'The upload took more than 12 hours.');
        }
        if (files.length === 0) return undefined;
        if (isDurable) await flushFolder(folder).catch(throwAppError(log));
        const drop = () => {
          for (const { temporaryName } of files) uncommitted.add(temporaryName);
        };
        for (const { temporaryName } of files) uncommitted.delete(temporaryName);
        try {
          const replaced = await index.commit(files, options);
          if (isRepeated(replaced)) return (drop(), replaced);
          await this.#retire(replaced);
          return undefined;
        } catch (error) {
          // After any other error the files may be stored. If they are not, they are garbage.
          if (notStored.includes(codeOf(error))) drop();
          throw error;
        }
      },
      close: async () => {
        for (const name of uncommitted) await this.#remove(name);
      },
    };
  }

  /**
   * Lists all stored files, or the one with this name. Throws `unavailable` if the index is in a
   * database that does not answer.
   */
  list(storedName?: string): MaybePromise<readonly ListedFile[]> {
    this.#checkOpen();
    return this.#options.index.list(storedName);
  }

  /** Lists the files after a place, in pages, which are not a snapshot. */
  async readPage(after: number, limit = pageRecordsMax): Promise<Page<ListedFile>> {
    this.#checkOpen();
    // One more, to know whether there is a next page.
    const found = await this.#options.index.page(after, limit + 1);
    const records = found.slice(0, limit);
    const last = found.length > limit ? records.at(-1) : undefined;
    return { records, next: last && (() => this.readPage(last.place, limit)) };
  }

  /**
   * Opens a file that was listed, and returns its content or a range of it, which the caller must
   * read or `return()`. Undefined if the file is missing on the disk, which is logged. Throws
   * `overloaded` if too many files are open.
   */
  async read(file: StoredFile, range = { start: 0, end: file.size }): Promise<Content | undefined> {
    const { storedName, temporaryName } = file;
    try {
      return await openContent(this.#toPath(temporaryName), range);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throwAppError(this.#options.log)(error);
      const [current] = await this.#options.index.list(storedName);
      // A retired file may go before its readers.
      if (current?.temporaryName !== temporaryName) return undefined;
      this.#options.log('error', 'stored file missing', { storedName, temporaryName });
      return undefined;
    }
  }

  /** Call it before files are listed to be read, and what it returns when the last one is open. */
  keepReplaced(): () => void {
    return this.#retired.beginReader();
  }

  /** Removes a file, which can still be read. False if it was replaced or removed meanwhile. */
  async remove(file: StoredFile, once?: Once): Promise<Changed> {
    this.#checkOpen();
    const removed = await this.#options.index.remove(file, once);
    if (removed === true) await this.#retire([file]);
    return removed;
  }

  /** What was done under a key. */
  get requests(): Requests {
    return this.#options.requests;
  }

  /** Removes garbage from the folder. Never rejects. */
  async sweep(): Promise<void> {
    const { folder, index, log, isDurable } = this.#options;
    const now = new Date();
    try {
      await this.#removeRetired();
      // A new time marks the folder as one in use.
      await utimes(folder, now, now);
      const listed = new Set((await index.list()).map(({ temporaryName }) => temporaryName));
      for await (const { name } of await opendir(folder, { bufferSize: 1_000 })) {
        if (this.#closed) return;
        const path = this.#toPath(name);
        // Else systemd-tmpfiles removes what has not changed for ten days in a temporary folder.
        if (!isDurable && listed.has(name)) await utimes(path, now, now);
        // A file that is committed during the sweep is less than a day old.
        else if (isUpload(name) && !listed.has(name) && (await isDayOld(path))) {
          await this.#remove(name);
        }
      }
    } catch (error) {
      // The driver has logged the outage; the next sweep tries again.
      if (this.#closed || ['overloaded', 'unavailable'].includes(codeOf(error) ?? '')) return;
      log('warn', 'the folder of uploads was not swept', { folder, reason: toReason(error) });
    }
  }

  /** Uploads in progress fail with `draining`, and a sweep ends without waiting for it. */
  async close(): Promise<void> {
    const { isDurable, folder } = this.#options;
    this.#closed = true;
    clearInterval(this.#timer);
    if (!isDurable) await rm(folder, { recursive: true, force: true });
  }

  /** Retires files that the index does not list any more. */
  async #retire(files: readonly ReplacedFile[]): Promise<void> {
    const now = new Date();
    for (const file of files) {
      this.#retired.add(file);
      // The day in a durable store begins now. A failure shortens it.
      const path = this.#toPath(file.temporaryName);
      if (this.#options.isDurable) await utimes(path, now, now).catch(() => undefined);
    }
    await this.#removeRetired();
  }

  async #removeRetired(): Promise<void> {
    for (const name of this.#retired.takeOld()) await this.#remove(name);
  }

  /** Removes a file from the disk. What cannot be removed now is garbage a day later. */
  async #remove(name: string): Promise<void> {
    this.#retired.delete(name);
    await unlink(this.#toPath(name)).catch(() => undefined);
  }

  /** For a folder of the run that somebody removed; other errors are thrown again. */
  async #remake(reason: unknown): Promise<void> {
    const { folder, isDurable } = this.#options;
    if (isDurable || this.#closed || codeOf(reason) !== 'ENOENT') throw reason;
    await mkdir(folder, { mode: 0o700 }).catch(allow('EEXIST'));
    this.#options.log('warn', 'the folder of uploads was removed, and is made again', { folder });
  }

  #toPath(temporaryName: string): string {
    return join(this.#options.folder, temporaryName);
  }

  #checkOpen(): void {
    if (this.#closed) throw new AppError('draining', 'The service is stopping.', { close: true });
  }
}
