/**
 * Group commit: writes that arrive in one iteration of the event loop share a transaction, and wait
 * for the disk together. Each is acknowledged after the commit.
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

export interface Writes {
  /**
   * Runs `write` in a transaction and resolves with its value after the commit. If `write` throws
   * before its first statement, only it is rejected. If a statement fails, the whole transaction is
   * rolled back, and every write in it is rejected.
   */
  run<T>(write: () => T): Promise<T>;
  /** Writes wait for this work, which takes the write lock on another connection. */
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
export function createWrites(database: Database, timed?: TimeStatement): Writes {
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  let waiting: Waiting[] = [];
  let isDeferred = false;
  /** The time since which another connection has held the lock. */
  let lockedAt: number | undefined;

  /** Returns false if the lock is held, after 10 ms; throws if it has been for too long. */
  const begins = (patienceMilliseconds: number): boolean => {
    try {
      begin.run();
    } catch (error) {
      lockedAt ??= performance.now();
      const patience = patienceMilliseconds - (performance.now() - lockedAt);
      if (isKind(error, sqliteBusy) && patience > 0) return false;
      lockedAt = undefined;
      throw error;
    }
    lockedAt = undefined;
    return true;
  };

  const flush = (patienceMilliseconds: number): void => {
    const batch = waiting;
    waiting = [];
    if (batch.length === 0) return;
    const startedAt = performance.now();
    let settled: (() => void)[];
    try {
      if (isDeferred || !begins(patienceMilliseconds)) {
        waiting = batch;
        setTimeout(flush, retryMilliseconds, patienceMilliseconds);
        return;
      }
      settled = batch.map(attempt);
      commit.run();
    } catch (error) {
      rollBack(database);
      const fault = toStoreError(error);
      for (const { reject } of batch) reject(fault);
      return;
    } finally {
      timed?.('write', performance.now() - startedAt);
    }
    for (const settle of settled) settle();
  };

  return {
    flush: () => flush(0),
    async defer(work) {
      isDeferred = true;
      try {
        return await work();
      } finally {
        isDeferred = false;
        lockedAt = undefined;
      }
    },
    run<T>(write: () => T) {
      if (waiting.length >= waitingMax) return Promise.reject(busy());
      // `setImmediate` runs after the phase of the event loop in which requests are read.
      if (waiting.length === 0) setImmediate(flush, lockedMilliseconds);
      return new Promise<T>((resolve, reject) => {
        waiting.push({ write, resolve: resolve as Waiting['resolve'], reject });
      });
    },
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
