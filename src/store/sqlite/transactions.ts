/**
 * What arrives in one iteration of the event loop shares a transaction. Reads lock the file once,
 * and find one state. Writes wait for the disk together, and each is acknowledged after the commit.
 */

import { AppError, overloaded } from '../../errors.ts';
import type { TimeStatement } from '../store.ts';
import {
  type Database,
  isKind,
  isSqliteError,
  rollBack,
  sqliteBusy,
  sqliteFull,
} from './database.ts';

export interface Transactions {
  /** Call it before a read: it opens the transaction of the reads, unless one is open. */
  read(): void;
  /**
   * Runs `write` in a transaction and resolves with its value after the commit. If `write` throws
   * before its first statement, only it is rejected. If a statement fails, the whole transaction is
   * rolled back, and every write in it is rejected.
   */
  write<T>(write: () => T): Promise<T>;
  /**
   * Writes wait for this work, which takes the write lock on another connection. Reads that follow
   * it find what it wrote.
   */
  defer<T>(work: () => Promise<T>): Promise<T>;
  /** Commits waiting writes now. They fail if another process holds the write lock. */
  flush(): void;
}

interface Waiting {
  readonly write: () => unknown;
  /** Called with what `write` returned. */
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Writes that may wait for the next transaction; each is waited for by a request. */
const waitingMax = 10_000;

/** Writes wait this long for the write lock of another process, then they are refused … */
const lockedMilliseconds = 2_000;
/** … and try again after this time, in which the event loop is free. */
const retryMilliseconds = 20;

/** `timed` is called with the duration of each transaction. */
export function createTransactions(database: Database, timed?: TimeStatement): Transactions {
  const beginReading = database.prepare('BEGIN');
  const takeLock = createLock(database);
  const commit = database.prepare('COMMIT');
  /** Whether there is a transaction: of reads, or the one in `flush`. */
  let isOpen = false;
  let waiting: Waiting[] = [];
  let isDeferred = false;

  const endReading = (): void => {
    if (isOpen) rollBack(database);
    isOpen = false;
  };

  const flush = (patienceMilliseconds: number): void => {
    endReading();
    const batch = waiting;
    waiting = [];
    if (batch.length === 0) return;
    const startedAt = performance.now();
    let settled: (() => void)[];
    try {
      if (isDeferred || !takeLock(patienceMilliseconds)) {
        waiting = batch;
        setTimeout(flush, retryMilliseconds, patienceMilliseconds);
        return;
      }
      isOpen = true;
      settled = batch.map(attempt);
      commit.run();
    } catch (error) {
      rollBack(database);
      const fault = toStoreError(error);
      for (const { reject } of batch) reject(fault);
      return;
    } finally {
      isOpen = false;
      timed?.('write', performance.now() - startedAt);
    }
    for (const settle of settled) settle();
  };

  return {
    read() {
      if (isOpen) return;
      beginReading.run();
      isOpen = true;
      setImmediate(endReading);
    },
    flush: () => flush(0),
    async defer(work) {
      isDeferred = true;
      try {
        return await work();
      } finally {
        endReading();
        isDeferred = false;
      }
    },
    write<T>(write: () => T) {
      if (waiting.length >= waitingMax) return Promise.reject(busy());
      // `setImmediate` runs after the phase of the event loop in which requests are read.
      if (waiting.length === 0) setImmediate(flush, lockedMilliseconds);
      return new Promise<T>((resolve, reject) => {
        waiting.push({ write, resolve: resolve as Waiting['resolve'], reject });
      });
    },
  };
}

/**
 * Takes the write lock of the file. The returned function returns false if another connection holds
 * it, after 10 ms; it throws if one has done so for too long.
 */
function createLock(database: Database): (patienceMilliseconds: number) => boolean {
  const begin = database.prepare('BEGIN IMMEDIATE');
  /** The time since which it has been held. */
  let heldAt: number | undefined;
  return (patienceMilliseconds) => {
    try {
      begin.run();
    } catch (error) {
      heldAt ??= performance.now();
      const patience = patienceMilliseconds - (performance.now() - heldAt);
      if (isKind(error, sqliteBusy) && patience > 0) return false;
      heldAt = undefined;
      throw error;
    }
    heldAt = undefined;
    return true;
  };
}

/** Runs a write, and returns what tells its result. Throws if the whole transaction fails. */
function attempt({ write, resolve, reject }: Waiting): () => void {
  try {
    const value = write();
    return () => resolve(value);
  } catch (error) {
    if (isSqliteError(error)) throw error;
    return () => reject(error);
  }
}

export function toStoreError(error: unknown): unknown {
  if (isKind(error, sqliteBusy)) return busy();
  if (isKind(error, sqliteFull))
    return new AppError('storage_full', 'The disk of the store is full.');
  return error;
}

function busy(): AppError {
  return overloaded('The store is busy.');
}
