/**
 * Transactions on the one connection of the driver.
 *
 * - Writes that come in one iteration of the event loop share transactions, and wait for the disk
 *   together. Each is acknowledged after its commit. A transaction takes writes for the time of a
 *   turn; the others come in later turns, each with a transaction of its own.
 * - Reads of one iteration share a transaction, because locking the file takes longer than reading
 *   a record. What this process commits ends it. As soon as another process has written, only the
 *   reads of one call of the event loop share it: between two calls the other one may acknowledge
 *   a write, and the requests that come after that must see it. A server that opens the file
 *   writes first (`announce`), so that all others know of it before its first client does.
 */

import { AppError, overloaded } from '../../errors.ts';
import { type RunInTurn, turnMilliseconds } from '../../scheduler.ts';
import type { TimeStatement } from '../store.ts';
import {
  type Database,
  isKind,
  isSqliteError,
  rollBack,
  sqliteBusy,
  sqliteFull,
  type Statement,
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
   * it find what it wrote. `work` resolves with whether it has committed.
   */
  defer(work: () => Promise<boolean>): Promise<boolean>;
  /** Commits waiting writes now. They fail if another process holds the write lock. */
  flush(): void;
  /** Call it when another connection has written: it was that of `defer`, or another process. */
  noticeForeign(): void;
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

interface TransactionsDeps {
  readonly database: Database;
  readonly run: RunInTurn;
  /** Called with the duration of each transaction that writes, from its lock to its commit. */
  readonly timed?: TimeStatement | undefined;
}

export function createTransactions({ database, run, timed }: TransactionsDeps): Transactions {
  const reading = createReading(database);
  const takeLock = createLock(database);
  const commit = database.prepare('COMMIT');
  const waiting: Waiting[] = [];
  let isWriting = false;
  /** Whether another connection writes: writes wait. */
  let isDeferred = false;
  /** Whether the next commit of another connection is that of `defer`. */
  let isOwnDue = false;

  /** Commits the writes of a turn. Returns false if another connection has the lock. */
  const commitSome = (patienceMilliseconds: number): boolean => {
    reading.end();
    try {
      if (isDeferred || !takeLock(patienceMilliseconds)) return false;
    } catch (error) {
      const fault = toStoreError(error);
      for (const { reject } of waiting.splice(0)) reject(fault);
      return true;
    }
    const startedAt = performance.now();
    isWriting = true;
    const settled = runSome(waiting, database, commit);
    isWriting = false;
    timed?.('write', performance.now() - startedAt);
    for (const settle of settled) settle();
    return true;
  };
  const flush = (): void => {
    void run(() => {
      if (waiting.length === 0) return;
      if (!commitSome(lockedMilliseconds)) setTimeout(flush, retryMilliseconds);
      else if (waiting.length > 0) setImmediate(flush);
    });
  };

  return {
    read() {
      if (!isWriting) reading.read();
    },
    noticeForeign() {
      if (!isOwnDue) reading.share();
      isOwnDue = false;
    },
    flush() {
      while (waiting.length > 0 && commitSome(0));
    },
    async defer(work) {
      isDeferred = true;
      isOwnDue = true;
      let isCommitted = false;
      try {
        return (isCommitted = await work());
      } finally {
        reading.end();
        isDeferred = false;
        isOwnDue &&= isCommitted;
      }
    },
    write<T>(write: () => T) {
      if (waiting.length >= waitingMax) return Promise.reject(busy());
      // `setImmediate` runs after the phase of the event loop in which requests are read.
      if (waiting.length === 0) setImmediate(flush);
      return new Promise<T>((resolve, reject) => {
        waiting.push({ write, resolve: resolve as Waiting['resolve'], reject });
      });
    },
  };
}

/** The transaction of reads. */
function createReading(database: Database) {
  const begin = database.prepare('BEGIN');
  let isOpen = false;
  let endLater: (end: () => void) => unknown = setImmediate;
  const end = (): void => {
    if (isOpen) rollBack(database);
    isOpen = false;
  };
  return {
    end,
    read(): void {
      if (isOpen) return;
      begin.run();
      isOpen = true;
      endLater(end);
    },
    share(): void {
      endLater = queueMicrotask;
      queueMicrotask(end);
    },
  };
}

/**
 * Runs and commits what waits, until the time of a turn is used. Returns what tells each its
 * result; what a statement that fails has rolled back is rejected.
 */
function runSome(waiting: Waiting[], database: Database, commit: Statement): (() => void)[] {
  const batch: Waiting[] = [];
  const settled: (() => void)[] = [];
  const end = performance.now() + turnMilliseconds;
  try {
    do {
      const next = waiting.shift();
      if (next === undefined) break;
      batch.push(next);
      settled.push(attempt(next));
    } while (performance.now() < end);
    commit.run();
    return settled;
  } catch (error) {
    rollBack(database);
    const fault = toStoreError(error);
    return batch.map(
      ({ reject }) =>
        (): void =>
          reject(fault),
    );
  }
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
