/**
 * Group commit: writes that arrive in one iteration of the event loop share one transaction, and
 * with it one wait for the disk. Each is acknowledged after the commit, never before.
 */

import { AppError } from '../../errors.ts';
import type { Database } from './database.ts';

export interface Writes {
  /**
   * Runs `write` inside a transaction and gives its value back once that is on the disk. What
   * `write` throws before its first statement refuses it alone; a statement that fails takes the
   * whole transaction with it, and every write in it fails.
   */
  run<T>(write: () => T): Promise<T>;
  /** Commits what waits, now: it fails where another process has the lock on writes. */
  flush(): void;
}

/** Writes that wait for the next transaction; a request waits for each of them. */
const waitingMax = 10_000;

/** Writes wait so long for another process that writes to the file, then they are refused … */
const lockedMilliseconds = 2_000;
/** … and begin again after this: the event loop is free meanwhile. */
const retryMilliseconds = 20;

interface Waiting {
  /** Runs the write and notes how it went; throws where the whole transaction is lost. */
  readonly attempt: () => void;
  readonly acknowledge: () => void;
  readonly fail: (error: unknown) => void;
}

export function createWrites(database: Database): Writes {
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  let waiting: Waiting[] = [];
  /** Since when another process has the lock. */
  let lockedAt: number | undefined;

  /** False where it is to be tried again; throws where that has lasted. */
  const begins = (patienceMilliseconds: number): boolean => {
    try {
      begin.run();
    } catch (error) {
      lockedAt ??= Date.now();
      if (isKind(error, sqliteBusy) && Date.now() - lockedAt < patienceMilliseconds) return false;
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
    try {
      if (!begins(patienceMilliseconds)) {
        waiting = batch;
        setTimeout(flush, retryMilliseconds, patienceMilliseconds);
        return;
      }
      for (const { attempt } of batch) attempt();
      commit.run();
    } catch (error) {
      rollBack(database);
      const fault = toStoreError(error);
      for (const { fail } of batch) fail(fault);
      return;
    }
    for (const { acknowledge } of batch) acknowledge();
  };

  return {
    flush: () => flush(0),
    run<T>(write: () => T) {
      if (waiting.length >= waitingMax) return Promise.reject(busy());
      // Requests are read in one phase of the loop; `setImmediate` comes right after it.
      if (waiting.length === 0) setImmediate(flush, lockedMilliseconds);
      return new Promise<T>((resolve, reject) => {
        waiting.push(toWaiting(write, resolve, reject));
      });
    },
  };
}

function toWaiting<T>(
  write: () => T,
  resolve: (value: T) => void,
  reject: (error: unknown) => void,
): Waiting {
  let settle: () => void;
  return {
    attempt() {
      try {
        const value = write();
        settle = () => resolve(value);
      } catch (error) {
        if (isSqliteError(error)) throw error;
        settle = () => reject(error);
      }
    },
    acknowledge: () => settle(),
    fail: reject,
  };
}

/** SQLite has rolled back by itself after some errors; then there is nothing left to end. */
function rollBack(database: Database): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    // Nothing to roll back.
  }
}

function isSqliteError(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error;
}

const sqliteBusy = 5;
const sqliteFull = 13;

function isKind(error: unknown, kind: number): boolean {
  // The low byte is the kind; the rest says which of its cases.
  return isSqliteError(error) && error.errcode % 256 === kind;
}

function toStoreError(error: unknown): unknown {
  if (isKind(error, sqliteBusy)) return busy();
  if (isKind(error, sqliteFull))
    return new AppError('storage_full', 'The disk of the store is full.');
  return error;
}

function busy(): AppError {
  return new AppError('overloaded', 'The store is busy.', { retryAfterSeconds: 1 });
}
