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
  /** Commits what waits, now. */
  flush(): void;
}

/** Writes that wait for the next transaction; a request waits for each of them. */
const waitingMax = 10_000;

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

  const flush = (): void => {
    const batch = waiting;
    waiting = [];
    if (batch.length === 0) return;
    try {
      begin.run();
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
    flush,
    run<T>(write: () => T) {
      if (waiting.length >= waitingMax) return Promise.reject(busy());
      // Requests are read in one phase of the loop; `setImmediate` comes right after it.
      if (waiting.length === 0) setImmediate(flush);
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

function toStoreError(error: unknown): unknown {
  if (!isSqliteError(error)) return error;
  // The low byte is the kind; the rest says which of its cases.
  const kind = error.errcode % 256;
  if (kind === sqliteBusy) return busy();
  if (kind === sqliteFull) return new AppError('storage_full', 'The disk of the store is full.');
  return error;
}

function busy(): AppError {
  return new AppError('overloaded', 'The store is busy.', { retryAfterSeconds: 1 });
}
