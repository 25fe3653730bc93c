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
 * 5. Reads of one iteration share a transaction, because locking the file takes longer than reading
 *    a record. A batch ends it, so that reads find what was acknowledged before.
 * 6. Between two calls of the event loop another process may acknowledge a write, which the next
 *    request must see. So once another process has written, only the reads of one call share a
 *    transaction. Each process that opens the file writes to it (`announce`), so that all others
 *    know of it before its first client does.
 *
 *     state    open transaction   read()             next batch          next commit or end
 *     idle     none               BEGIN → reading    BEGIN → writing     –
 *     reading  of reads           joins it           ends it first       end of iteration → idle
 *     writing  of a batch         joins it           – (synchronous)     COMMIT → idle
 *
 * For example, writes A (2 ms), B (4 ms), C (1 ms) come in iteration 1, where a request has read:
 *
 *     iteration 1: reading; A, B and C wait; the transaction of the read ends
 *     iteration 2: BEGIN IMMEDIATE, A, B (6 ms, over the 5 ms of a turn), COMMIT: A, B acknowledged
 *     iteration 3: BEGIN IMMEDIATE, C, COMMIT: C acknowledged
 */

import { setTimeout as pause } from 'node:timers/promises';
import { AppError, overloaded } from '../../errors.ts';
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
  sqliteFull,
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
  /** Throws if what is written would be lost. */
  readonly checkFile: () => void;
  /** Called with the duration of each transaction that writes, from its lock to its commit. */
  readonly timed?: TimeStatement | undefined;
}

export class Transactions {
  readonly #deps: TransactionsDeps;
  readonly #begin: Statement;
  readonly #beginImmediate: Statement;
  readonly #commit: Statement;
  readonly #dataVersion: Statement;
  /** Of exclusive work, and of batches that wait for the lock of another process. */
  readonly #serial = createSerial();
  readonly #waiting: Waiting[] = [];
  /** Writes that have not asked for their turns. */
  #turnless = 0;
  #state: 'idle' | 'reading' | 'writing' = 'idle';
  /** Calls the function at the end of an iteration or, with other processes, of a call. */
  #atEnd: (end: () => void) => unknown = setImmediate;
  #lockedMillisecondsMax = 2_000;
  #version: unknown;

  constructor(deps: TransactionsDeps) {
    const { database } = deps;
    this.#deps = deps;
    this.#begin = database.prepare('BEGIN');
    this.#beginImmediate = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#dataVersion = database.prepare('PRAGMA data_version');
    this.#isForeignCommit();
  }

  /** Call it before a read: it opens the transaction of the reads, unless one is open. */
  read(): void {
    if (this.#state !== 'idle') return;
    this.#begin.run();
    this.#state = 'reading';
    this.#atEnd(this.#endReading);
  }

  /** Runs `work` in a transaction and resolves with its value after the commit. */
  write<T>(work: () => T): Promise<T> {
    if (this.#waiting.length >= waitingMax) return Promise.reject(busy());
    this.#askForTurns(1);
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
        this.#endReading();
        if (this.#isForeignCommit()) this.#deps.changes.countEverything();
        this.#askForTurns(this.#waiting.length);
      }
    });
  }

  /** Counts everything as changed if another connection has committed since the last call. */
  countForeign(): void {
    if (!this.#isForeignCommit()) return;
    this.#deps.changes.countEverything();
    this.#atEnd = queueMicrotask;
    queueMicrotask(this.#endReading);
  }

  /** Commits what waits. It is rejected if another process holds the write lock. */
  async close(): Promise<void> {
    this.#lockedMillisecondsMax = 0;
    do await this.#serial.run(this.#commitWaiting);
    while (this.#waiting.length > 0);
  }

  readonly #endReading = (): void => {
    if (this.#state !== 'reading') return;
    rollBack(this.#deps.database);
    this.#state = 'idle';
  };

  /** Whether another connection has committed since the last call. */
  #isForeignCommit(): boolean {
    this.read();
    const last = this.#version;
    this.#version = this.#dataVersion.get()?.['data_version'];
    return this.#version !== last;
  }

  /** Asks for them after the phase of the event loop in which requests are read. */
  #askForTurns(turns: number): void {
    if (this.#turnless === 0 && turns > 0) {
      setImmediate(() => {
        const asked = this.#turnless;
        this.#turnless = 0;
        for (let turn = 0; turn < asked; turn += 1) void this.#deps.run(this.#useTurn);
      });
    }
    this.#turnless += turns;
  }

  /** Commits a batch of what still waits, unless exclusive work or a lock is waited for. */
  readonly #useTurn = (): void => {
    if (!this.#serial.isIdle || this.#commitBatch(performance.now())) return;
    void this.#serial.run(this.#commitWaiting);
  };

  /** Commits what waits now. */
  readonly #commitWaiting = async (): Promise<void> => {
    const since = performance.now();
    const last = this.#waiting.at(-1);
    const isLeft = (): boolean => last !== undefined && this.#waiting.includes(last);
    while (isLeft()) {
      const isDone = await this.#deps.run(() => this.#commitBatch(since));
      if (!isDone) await pause(retryMilliseconds);
    }
    this.#askForTurns(this.#waiting.length);
  };

  /** Returns false if another process holds the write lock, and writes may still wait for it. */
  #commitBatch(waitingSince: number): boolean {
    const { database, checkFile, timed } = this.#deps;
    const waiting = this.#waiting;
    if (waiting.length === 0) return true;
    const batch: Waiting[] = [];
    const settled: (() => void)[] = [];
    let startedAt = 0;
    this.#endReading();
    try {
      checkFile();
      this.#beginImmediate.run();
      this.#state = 'writing';
      startedAt = performance.now();
      do {
        const next = waiting.shift() as Waiting; // there is one
        batch.push(next);
        settled.push(next.run());
      } while (waiting.length > 0 && performance.now() - startedAt < turnMilliseconds);
      this.#commit.run();
      for (const settle of settled) settle();
    } catch (error) {
      const hasLock = this.#state === 'writing';
      const mayWait = performance.now() - waitingSince < this.#lockedMillisecondsMax;
      if (!hasLock && mayWait && isKind(error, sqliteBusy)) return false;
      if (hasLock) rollBack(database);
      for (const { reject } of hasLock ? batch : waiting.splice(0)) reject(toStoreError(error));
    } finally {
      if (this.#state === 'writing') timed?.('write', performance.now() - startedAt);
      this.#state = 'idle';
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

export function toStoreError(error: unknown): unknown {
  if (isKind(error, sqliteBusy)) return busy();
  if (!isKind(error, sqliteFull)) return error;
  return new AppError('storage_full', 'The disk of the store is full.');
}

function busy(): AppError {
  return overloaded('The store is busy.');
}
