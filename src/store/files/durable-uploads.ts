/**
 * The store of uploaded files for a durable store of records and a folder of its own: files in one
 * fixed folder, their index in the database. Both outlive the process, and any number of nodes
 * share them (Spec §4.4, R18).
 *
 * A file is on the disk before it is in the index, and is never written to again. A replaced file
 * stays for `graceSeconds`, and longer for as long as a node says that it is being read; then any
 * node removes it. So a download has one version of each file whole; one whose node could not say
 * so for that long, or that is beyond the bound of replaced files, is cut, never mixed.
 */

import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError, toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { DurableFileOperations } from './durable-operations.ts';
import {
  beginUpload,
  createFileWriter,
  readContent,
  removeFiles,
  type WriteFile,
} from './content.ts';
import {
  type FileIndex,
  type FileIndexOptions,
  type FileList,
  removableMax,
} from '../file-index.ts';
import { codeOf, toAppError } from './operations.ts';
import { checkUploads } from './check.ts';
import {
  type Listing,
  type Snapshot,
  stopping,
  type Upload,
  type Uploads,
  type WrittenFile,
} from '../uploads.ts';
import type { UploadsOptions } from './run-uploads.ts';
import { removeDeadFolders } from './run-folder.ts';

export interface DurableUploads extends Uploads {
  /**
   * Removes what nobody needs any more, as the timer does; also what became so while an earlier
   * round was under way. Never rejects.
   */
  sweep(): Promise<void>;
  /** Over when the check of the start is. Never rejects. */
  readonly checked: Promise<void>;
}

export interface DurableUploadsOptions extends UploadsOptions {
  readonly files: DurableFileOperations;
  readonly openIndex: (options: FileIndexOptions) => Promise<FileIndex>;
  /** Never gives the same twice, on whatever node. */
  readonly createName: () => string;
  readonly log: Log;
  /** How long a replaced file stays at least; ten minutes where left out. */
  readonly graceSeconds?: number;
}

const folderName = 'inkwell-files';
/** Longer than reading the index takes, and than a node may stand still in a download. */
const defaultGraceSeconds = 600;
/** So often within the grace a node says what is being read. */
const sweepsPerGrace = 10;
/** So many files that this node has replaced are reason to sweep before the timer does. */
const replacedMax = 100;
/** So long a stop waits for what is done beside the requests. */
const closeMilliseconds = 1_000;
/** Files of commits with an unknown outcome; beyond, uploads are refused before they begin. */
const doubtfulMax = 1_000;

/** Throws a line for a person where the folder cannot be made or used. */
export async function openDurableUploads(options: DurableUploadsOptions): Promise<DurableUploads> {
  const { directory, run, storedFilesMax, files, openIndex, log } = options;
  const { graceSeconds = defaultGraceSeconds } = options;
  const folder = join(directory, folderName);
  try {
    await files.makeFolder(folder);
    await files.syncFolder(folder);
    await files.syncFolder(directory);
  } catch (error) {
    const code = codeOf(error) ?? 'unknown';
    throw new Error(`UPLOAD_DIR: the folder ${folder} cannot be used (${code}).`, { cause: error });
  }
  // Of the time before the store was a durable one.
  await removeDeadFolders(directory, run, files);
  const index = await openIndex({ filesMax: storedFilesMax, graceSeconds });
  return new IndexedUploads({ ...options, folder, index, log, graceSeconds });
}

interface IndexedOptions extends Omit<DurableUploadsOptions, 'openIndex'> {
  readonly folder: string;
  readonly index: FileIndex;
  readonly graceSeconds: number;
}

class IndexedUploads implements DurableUploads {
  readonly checked: Promise<void>;
  readonly #options: IndexedOptions;
  readonly #writeFile: WriteFile;
  readonly #timer: NodeJS.Timeout;
  /** How many downloads read the list of which change. */
  readonly #reading = new Map<number, number>();
  /**
   * Names on disk of files that may be in the index or not, since a commit failed without saying
   * so, or that are not but could not be removed.
   */
  readonly #doubtful = new Set<string>();
  /** Names that were given while the check of the start was under way; undefined after it. */
  #given: Set<string> | undefined = new Set();
  /** Files that this node has replaced since it swept. */
  #replaced = 0;
  /** The last round that was asked for; they run one after the other. */
  #lastSweep: Promise<void> = Promise.resolve();
  /** The same round until it begins: a request before that needs no other. */
  #nextSweep: Promise<void> | undefined;
  #closed = false;

  constructor(options: IndexedOptions) {
    this.#options = options;
    const checkOpen = (): void => this.#checkOpen();
    this.#writeFile = createFileWriter({ ...options, checkOpen });
    const milliseconds = Math.max(1, (options.graceSeconds * 1000) / sweepsPerGrace);
    this.#timer = setInterval(() => void this.sweep(), milliseconds).unref();
    this.checked = checkUploads({
      ...options,
      isOwn: (name) => this.#given?.has(name) === true,
      isOver: () => this.#closed,
    }).finally(() => {
      this.#given = undefined;
    });
  }

  begin(): Upload {
    return beginUpload({
      createName: () => this.#createName(),
      writeFile: this.#writeFile,
      commit: (files, uncommitted) => this.#commit(files, uncommitted),
      remove: async (names) => {
        const { left } = await this.#remove(names);
        for (const name of left) this.#doubtful.add(name);
      },
    });
  }

  list(): MaybePromise<Listing> {
    this.#checkOpen();
    return andThen(this.#options.index.list(), (list) => ({ open: () => this.#open(list) }));
  }

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
    // What is still asked of a database that does not answer ends with its connections.
    const end = pause(closeMilliseconds, undefined, { ref: false });
    await Promise.race([Promise.all([this.checked, this.#lastSweep]), end]);
  }

  #createName(): string {
    this.#checkOpen();
    if (this.#doubtful.size >= doubtfulMax) {
      void this.sweep();
      throw new AppError('overloaded', 'The database does not answer.', { retryAfterSeconds: 2 });
    }
    const name = `${this.#options.createName()}.upload`;
    this.#given?.add(name);
    return name;
  }

  async #commit(given: readonly WrittenFile[], uncommitted: Set<string>): Promise<void> {
    this.#checkOpen();
    const { folder, files, index } = this.#options;
    // Of two with one name the later one counts; the other goes with `close()`.
    const kept = [...new Map(given.map((file) => [file.storedName, file])).values()];
    if (kept.length === 0) return;
    await files.syncFolder(folder).catch((error: unknown) => {
      throw toAppError(error);
    });
    for (const { temporaryName } of kept) uncommitted.delete(temporaryName);
    try {
      const replaced = await index.commit(kept);
      // Others have been counted meanwhile.
      this.#replaced += replaced;
    } catch (error) {
      const isRefused = error instanceof AppError && error.code === 'storage_full';
      const names = isRefused ? uncommitted : this.#doubtful;
      for (const { temporaryName } of kept) names.add(temporaryName);
      throw error;
    }
    if (this.#replaced >= replacedMax || this.#doubtful.size > 0) void this.sweep();
  }

  #open({ files: listed, change }: FileList): Snapshot {
    const { folder, files } = this.#options;
    this.#reading.set(change, (this.#reading.get(change) ?? 0) + 1);
    let released = false;
    return {
      files: listed,
      read: (file) => readContent(files, join(folder, file.temporaryName), file.size),
      release: () => {
        const readers = this.#reading.get(change) ?? 0;
        if (!released && readers <= 1) this.#reading.delete(change);
        else if (!released) this.#reading.set(change, readers - 1);
        released = true;
        return Promise.resolve();
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
      // The driver has logged that the database is away; the next round tries again.
      if (this.#closed || codeOf(error) === 'overloaded') return;
      this.#options.log('warn', 'replaced files were not removed', { reason: toReason(error) });
    }
  }

  async #settleDoubts(): Promise<void> {
    const names = [...this.#doubtful];
    if (names.length === 0) return;
    const never = await this.#options.index.abandon(names);
    for (const name of names) this.#doubtful.delete(name);
    // One that stays is removed like those that were replaced.
    await this.#remove(never);
  }

  async #removeReplaced(): Promise<void> {
    const { index } = this.#options;
    for (let isMore = true; isMore && !this.#closed;) {
      const { gone } = await this.#remove(await index.removable(this.#reading.keys()));
      if (gone.length > 0) await index.forget(gone);
      isMore = gone.length === removableMax;
    }
  }

  #remove(names: readonly string[]): ReturnType<typeof removeFiles> {
    const { files, folder } = this.#options;
    return removeFiles(files, folder, names);
  }

  #checkOpen(): void {
    if (this.#closed) throw stopping();
  }
}
