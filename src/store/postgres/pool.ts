/**
 * A few connections that share all statements. Every wait is limited: each caller gets a result in
 * time. A connection that does not answer is closed, unless the server says that it still executes
 * the statement: a process that waits in COMMIT for the disk, or for a standby, would stay, and its
 * replacement would be one more. While the server is away, requests are refused with `unavailable`,
 * and one attempt to connect is made at a time.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { DriverOptions } from '../store.ts';
import type { Cells, Row } from '../sql/rows.ts';
import {
  type Connection,
  type Result,
  type Server,
  sql,
  type Statement,
  toRows,
} from './connection.ts';
import {
  busy,
  createOutageLog,
  isAway,
  isConnectionLost,
  isReadOnly,
  lost,
  type OutageLog,
  toStoreError,
} from './faults.ts';

type PoolOptions = Pick<DriverOptions, 'log' | 'connectionsMax' | 'timeoutSeconds' | 'timed'>;

/** Limit for statements of a kind that run or wait for a connection. */
const statementsMax = 2_000;
/** Connections that no write takes: when all writes hang, reads go on. */
const connectionsForReads = 3;
/** How often statements are checked for being late. */
const checkMilliseconds = 100;
/** Minimum interval between replacements of all connections. */
const renewMilliseconds = 1_000;
/** The pause after the first failed attempt to connect, which doubles, and its maximum. */
const pauseMilliseconds = 50;
const pauseMillisecondsMax = 1_000;
const closeMilliseconds = 2_000;
const closePauseMilliseconds = 10;

/** A statement, until its caller has the result. */
interface Task {
  readonly statement: Statement;
  readonly kind: 'read' | 'write';
  /** When the statement was asked for, which may be long before it reached the pool. */
  readonly askedAt: number;
  /** True if the statement may run again after its connection was lost. */
  repeatable: boolean;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export class Pool {
  readonly #server: Server;
  readonly #options: PoolOptions;
  readonly #outage: OutageLog;
  /** How long one who asks waits: the server cancels a statement a second earlier. */
  readonly #milliseconds: number;
  /** Statements whose callers wait, and how many of each kind they are. */
  readonly #tasks = new Set<Task>();
  readonly #waiting = { read: 0, write: 0 };
  /** Writes under way, also those whose callers have gone. */
  #writing = 0;
  /** The connections, and when each was opened. */
  readonly #openedAt = new Map<Connection, number>();
  readonly #idle: Connection[] = [];
  /** Statements that wait for a connection. */
  #queue: Task[] = [];
  #connecting = 0;
  /** Failed attempts to connect since the last successful one. */
  #failures = 0;
  #pausing: NodeJS.Timeout | undefined;
  #checking: NodeJS.Timeout | undefined;
  #renewedAt = -Infinity;
  #closed = false;
  /** Reads so far. None finds less than was committed when it was counted. */
  reads = 0;

  constructor(server: Server, options: PoolOptions) {
    this.#server = server;
    this.#options = options;
    this.#outage = createOutageLog(options.log, server.address);
    this.#milliseconds = (options.timeoutSeconds + 1) * 1000;
  }

  /** Runs a statement that only reads. Runs it again if its connection was lost. */
  async read(statement: Statement, askedAt?: number): Promise<readonly Row[]> {
    return toRows(await this.#ask('read', statement, askedAt));
  }

  /** As `read`, with rows as arrays of cells. */
  async readCells(statement: Statement, askedAt?: number): Promise<readonly Cells[]> {
    return (await this.#ask('read', statement, askedAt)).cells;
  }

  /**
   * Runs a statement that writes, atomically, and returns the rows of its RETURNING clause. After
   * `unavailable` it may or may not be stored.
   */
  async write(statement: Statement, askedAt?: number): Promise<readonly Row[]> {
    return toRows(await this.#ask('write', statement, askedAt));
  }

  /** Waits a moment for the statements under way. */
  async close(): Promise<void> {
    const end = performance.now() + closeMilliseconds;
    while (this.#tasks.size > 0 && performance.now() < end) await pause(closePauseMilliseconds);
    this.#closed = true;
    clearTimeout(this.#pausing);
    clearTimeout(this.#checking);
    for (const task of this.#tasks) this.#settle(task, lost());
    for (const connection of this.#openedAt.keys()) this.#remove(connection);
  }

  #ask(kind: Task['kind'], statement: Statement, askedAt = performance.now()): Promise<Result> {
    if (this.#waiting[kind] >= statementsMax) return Promise.reject(busy());
    if (this.#isLate(askedAt) || this.#closed) return Promise.reject(lost());
    if (kind === 'read') this.reads += 1;
    return new Promise((resolve, reject) => {
      const repeatable = kind === 'read';
      const task: Task = { statement, kind, askedAt, repeatable, resolve, reject };
      this.#tasks.add(task);
      this.#waiting[kind] += 1;
      this.#queue.push(task);
      this.#checking ??= setTimeout(() => this.#check(), checkMilliseconds);
      this.#advance();
    });
  }

  #isLate(askedAt: number): boolean {
    return performance.now() - askedAt >= this.#milliseconds;
  }

  #check(): void {
    this.#checking = undefined;
    for (const task of this.#tasks) if (this.#isLate(task.askedAt)) this.#settle(task, lost());
    this.#queue = this.#queue.filter((task) => this.#tasks.has(task));
    if (this.#tasks.size > 0) {
      this.#checking = setTimeout(() => this.#check(), checkMilliseconds);
    }
  }

  /** Starts what waits, as far as there are connections, and opens more of them. */
  #advance(): void {
    for (;;) {
      const connection = this.#idle.at(-1);
      const task = connection && this.#take();
      if (connection === undefined || task === undefined) break;
      this.#idle.pop();
      this.#start(connection, task);
    }
    const free = this.#options.connectionsMax - this.#openedAt.size;
    const wanted = Math.min(this.#queue.length, this.#failures > 0 ? 1 : free, free);
    while (this.#connecting < wanted && this.#pausing === undefined && !this.#closed) {
      void this.#connect();
    }
  }

  /** Takes the next statement that may start from the queue. */
  #take(): Task | undefined {
    const writesMax = Math.max(1, this.#options.connectionsMax - connectionsForReads);
    if (this.#writing < writesMax) return this.#queue.shift();
    const at = this.#queue.findIndex(({ kind }) => kind === 'read');
    return at === -1 ? undefined : this.#queue.splice(at, 1)[0];
  }

  /** Asks whether a process of the server executes a statement, and does not only send rows. */
  async #isAtWork(processId: number | null): Promise<boolean> {
    const rows = await this.read(sql`SELECT FROM pg_stat_activity WHERE pid = ${processId}
      AND state = 'active' AND wait_event_type IS DISTINCT FROM 'Client'`);
    return rows.length > 0;
  }

  async #connect(): Promise<void> {
    this.#connecting += 1;
    try {
      const openedAt = performance.now();
      const connection = await this.#server.connect({
        statementSeconds: this.#options.timeoutSeconds,
        isAtWork: (processId) => this.#isAtWork(processId),
        onClosed: () => this.#remove(connection),
      });
      this.#openedAt.set(connection, openedAt);
      this.#failures = 0;
      this.#release(connection);
    } catch (error) {
      this.#outage.noteAway(error);
      const milliseconds = Math.min(pauseMilliseconds * 2 ** this.#failures, pauseMillisecondsMax);
      this.#pausing ??= setTimeout(() => {
        this.#pausing = undefined;
        this.#advance();
      }, milliseconds);
      this.#failures += 1;
      if (this.#openedAt.size === 0) {
        for (const task of this.#queue.splice(0)) this.#settle(task, lost());
      }
    }
    this.#connecting -= 1;
    this.#advance();
  }

  #start(connection: Connection, task: Task): void {
    const isWrite = task.kind === 'write';
    if (isWrite) this.#writing += 1;
    connection.run(task.statement, (error, result) => {
      if (isWrite) this.#writing -= 1;
      if (result === undefined) this.#fail(connection, task, error);
      else {
        this.#outage.noteSuccess();
        this.#settle(task, result);
      }
      this.#release(connection);
      this.#advance();
    });
  }

  #fail(connection: Connection, task: Task, error: unknown): void {
    const fault = toStoreError(error);
    if (isAway(fault)) this.#outage.noteAway(error);
    else this.#outage.noteSuccess();
    const isLost = isConnectionLost(error);
    if (isLost || isReadOnly(error)) this.#renew();
    if (isLost) this.#remove(connection);
    if (isLost && task.repeatable && !this.#closed && this.#tasks.has(task)) {
      task.repeatable = false;
      this.#queue.unshift(task);
    } else this.#settle(task, fault);
  }

  /** Does nothing for a statement that was late. */
  #settle(task: Task, result: Result | Error): void {
    if (!this.#tasks.delete(task)) return;
    this.#waiting[task.kind] -= 1;
    this.#options.timed?.(task.kind, performance.now() - task.askedAt);
    if (result instanceof Error) task.reject(result);
    else task.resolve(result);
  }

  /**
   * Replaces all connections: if one is lost, others may be dead without an error, and a session
   * that can only read may stay so after the database accepts writes.
   */
  #renew(): void {
    if (performance.now() - this.#renewedAt < renewMilliseconds) return;
    this.#renewedAt = performance.now();
    for (const connection of this.#idle.splice(0)) this.#remove(connection);
  }

  /** Makes a connection available for the next statement. */
  #release(connection: Connection): void {
    const openedAt = this.#openedAt.get(connection);
    if (openedAt === undefined) return;
    if (this.#closed || openedAt < this.#renewedAt) this.#remove(connection);
    else this.#idle.push(connection);
  }

  /** Closes a connection. Its statement, if there is one, fails. */
  #remove(connection: Connection): void {
    if (!this.#openedAt.delete(connection)) return;
    if (this.#idle.includes(connection)) this.#idle.splice(this.#idle.indexOf(connection), 1);
    connection.end();
  }
}
