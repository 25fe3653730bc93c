/**
 * Transactions on the one connection of the driver.
 *
 * 1. `write(work)` waits. What waits is committed in batches, together: SQLite waits for the disk
 *    once a batch. Each write asks the scheduler for a turn, after the iteration of the event loop
 *    in which it came. A turn takes the oldest writes for the time of a turn, and commits. So a
 *    write is committed in its own turn at the latest, however many wait before it. It is
 *    acknowledged after its commit.
 * 2. If `work` throws before its first statement, only this write is rejected. If a statement or
 *    the commit fails, the batch is rolled back and all its writes are rejected.
 * 3. Exclusive work, which writes on another connection, begins when the writes are committed that
 *    came before it. Those that come while it runs are committed before the next exclusive work.
 * 4. If another process holds the write lock, the batch tries again every 20 ms, in between the
 *    event loop is free. After 2 s all that waits is rejected.
 * 5. A read is a transaction of its own. It finds what was acknowledged before, by this process or
 *    another one. `PRAGMA data_version` tells the cache that another connection has committed.
 *
 * For example, writes A (2 ms), B (4 ms), C (1 ms) come in iteration 1:
 *
 *     iteration 2: BEGIN IMMEDIATE, A, B (6 ms, over the 5 ms of a turn), COMMIT: A, B acknowledged
 *     iteration 3: BEGIN IMMEDIATE, C, COMMIT: C acknowledged
 */

import { setTimeout as pause } from 'node:timers/promises';
import { AppError, overloaded, toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { type RunInTurn, turnMilliseconds } from '../../scheduler.ts';
import { createSerial } from '../../serial.ts';
import type { Changes } from '../changes.ts';
import type { TimeStatement } from '../store.ts';
import {
  type Database,
  isKind,
  isSqliteError,
  rollBack,
  sqliteBusy,
  sqliteFault,
  sqliteFull,
  sqliteRefused,
  type Statement,
} from './database.ts';

interface Waiting {
  /** Returns what tells the caller its result. Throws if the whole batch fails. */
  readonly run: () => () => void;
  readonly reject: (error: unknown) => void;
}

/** Writes that may wait for their batch; each is waited for by a request. */
const waitingMax = 10_000;
const retryMilliseconds = 20;

interface TransactionsDeps {
  readonly database: Database;
  readonly changes: Changes;
  readonly run: RunInTurn;
  readonly log: Log;
  /** Throws if what is written would be lost. */
  readonly checkFile: () => void;
  /** Called with the duration of each transaction that writes, from its lock to its commit. */
  readonly timed?: TimeStatement | undefined;
}

export class Transactions {
  readonly #deps: TransactionsDeps;
  readonly #beginImmediate: Statement;
  readonly #commit: Statement;
  readonly #dataVersion: Statement;
  /** Of exclusive work, and of batches that wait for the lock of another process. */
  readonly #serial = createSerial();
  readonly #waiting: Waiting[] = [];
  #lockedMillisecondsMax = 2_000;
  #version: unknown;

  constructor(deps: TransactionsDeps) {
    const { database } = deps;
    this.#deps = deps;
    this.#beginImmediate = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#dataVersion = database.prepare('PRAGMA data_version');
    this.#isForeignCommit();
  }

  /** Runs `work` in a transaction and resolves with its value after the commit. */
  write<T>(work: () => T): Promise<T> {
    if (this.#waiting.length >= waitingMax) return Promise.reject(busy());
    // After the phase of the event loop in which requests are read.
    setImmediate(this.#askForTurn);
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ run: () => attempt(work, resolve, reject), reject });
    });
  }

  /**
   * Runs work that takes the write lock on another connection. Reads that follow it find what it
   * wrote.
   */
  writeElsewhere<T>(work: () => Promise<T>): Promise<T> {
    return this.#serial.run(async () => {
      await this.#commitWaiting();
      try {
        return await work();
      } finally {
        this.countForeign();
        this.#commitLater();
      }
    });
  }

  /** Counts everything as changed if another connection has committed since the last call. */
  countForeign(): void {
    if (this.#isForeignCommit()) this.#deps.changes.countEverything();
  }

  /** Leaves out of the next count what was committed on another connection until now. */
  skipForeign(): void {
    this.#isForeignCommit();
  }

  /** The error that a client gets. The reason of a fault of the disk is logged. */
  toStoreError(error: unknown): unknown {
    if (isKind(error, sqliteBusy)) return busy();
    const isFault = isKind(error, sqliteFault);
    if (isFault) {
      this.#deps.log('error', 'the disk of the store failed', { reason: toReason(error) });
    }
    if (isKind(error, sqliteFull) || isRefused(error)) {
      return new AppError('storage_full', 'The disk of the store is full.');
    }
    if (!isFault) return error;
    return new AppError('unavailable', 'The disk of the store failed.', { retryAfterSeconds: 2 });
  }

  /** Commits what waits. It is rejected if another process holds the write lock. */
  async close(): Promise<void> {
    this.#lockedMillisecondsMax = 0;
    do await this.#serial.run(this.#commitWaiting);
    while (this.#waiting.length > 0);
  }

  /** Whether another connection has committed since the last call. */
  #isForeignCommit(): boolean {
    const last = this.#version;
    this.#version = this.#dataVersion.get()?.['data_version'];
    return this.#version !== last;
  }

  readonly #askForTurn = (): void => void this.#deps.run(this.#useTurn);

  /** Commits a batch of what still waits, unless exclusive work or a lock is waited for. */
  readonly #useTurn = (): void => {
    if (!this.#serial.isIdle || this.#commitBatch(performance.now())) return;
    this.#commitLater();
  };

  #commitLater(): void {
    if (this.#waiting.length > 0) void this.#serial.run(this.#commitWaiting);
  }

  /** Commits what waits now. */
  readonly #commitWaiting = async (): Promise<void> => {
    const since = performance.now();
    const last = this.#waiting.at(-1);
    const isLeft = (): boolean => last !== undefined && this.#waiting.includes(last);
    while (isLeft()) {
      const isDone = await this.#deps.run(() => this.#commitBatch(since));
      if (!isDone) await pause(retryMilliseconds);
    }
    // What came meanwhile has used its turns.
    this.#commitLater();
  };

  /** Returns false if another process holds the write lock, and writes may still wait for it. */
  #commitBatch(waitingSince: number): boolean {
    const { database, checkFile, timed } = this.#deps;
    const waiting = this.#waiting;
    if (waiting.length === 0) return true;
    const batch: Waiting[] = [];
    const settled: (() => void)[] = [];
    let startedAt: number | undefined;
    try {
      checkFile();
      this.#beginImmediate.run();
      startedAt = performance.now();
      do {
        const next = waiting.shift() as Waiting; // there is one
        batch.push(next);
        settled.push(next.run());
      } while (waiting.length > 0 && performance.now() - startedAt < turnMilliseconds);
      this.#commit.run();
      for (const settle of settled) settle();
    } catch (error) {
      const hasLock = startedAt !== undefined;
      const mayWait = performance.now() - waitingSince < this.#lockedMillisecondsMax;
      if (!hasLock && mayWait && isKind(error, sqliteBusy)) return false;
      if (hasLock) rollBack(database);
      for (const { reject } of hasLock ? batch : waiting.splice(0))
        reject(this.toStoreError(error));
    } finally {
      if (startedAt !== undefined) timed?.('write', performance.now() - startedAt);
    }
    return true;
  }
}

/** Returns what tells the caller the result. Throws what makes the whole batch fail. */
function attempt<T>(
  work: () => T,
  resolve: (value: T) => void,
  reject: (error: unknown) => void,
): () => void {
  try {
    const value = work();
    return () => resolve(value);
  } catch (error) {
    if (isSqliteError(error)) throw error;
    return () => reject(error);
  }
}

/**
 * Of a file that may not grow, by a quota (EDQUOT) or a limit (EFBIG), SQLite says that a write, or
 * the size of the index of its log, failed. A disk that is broken sounds the same.
 */
function isRefused(error: unknown): boolean {
  return isSqliteError(error) && sqliteRefused.includes(error.errcode);
}

function busy(): AppError {
  return overloaded('The store is busy.');
}
