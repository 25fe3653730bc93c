/**
 * Two pools of connections: one for reads, one for writes, so that writes that hang leave reads
 * alone. Each caller gets a result in time:
 *
 *     wait in line ──→ connect ──→ statements ──→ release
 *          the caller is refused when its time is over; the connection stays taken until the
 *          statement is answered, or the connection is found dead
 *
 * A read that is late has a dead connection, because the server cancels statements earlier. A write
 * may wait in COMMIT for the disk or for a standby, which nothing cancels: its connection is kept
 * while the server says that it is at work, since its replacement would be one process more.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { createSerial, type Serial } from '../../../serial.ts';
import type { Cells, Row } from '../../sql/rows.ts';
import type { DriverOptions } from '../../store.ts';
import {
  type Client,
  type Clients,
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

/** Limit for statements of a kind that wait for a connection. */
const waitingMax = 2_000;
/** How often statements are checked for being late. */
const checkMilliseconds = 100;
/** Minimum interval between replacements of all connections. */
const renewMilliseconds = 1_000;
/** Interval of attempts to connect while they fail. */
const retryMilliseconds = 200;
const closeMilliseconds = 2_000;
const closePauseMilliseconds = 10;

/** Runs one statement of a transaction. */
export type RunStatement = (statement: Statement) => Promise<readonly Row[]>;
type Ask = (statement: Statement) => Promise<Result>;
type Kind = 'read' | 'write';

interface Lane {
  /** Has as many places as the pool has connections, so that nothing waits inside the pool. */
  readonly line: Serial;
  readonly max: number;
  clients: Clients;
}

/** What one caller asked for, until it is answered. */
interface Task {
  readonly kind: Kind;
  /** When it was asked for, which may be long before it reached the pool. */
  readonly askedAt: number;
  /** The connection of the statement that runs, and when that began. */
  client?: Client | undefined;
  startedAt: number;
  /** Does nothing if the caller has gone. */
  readonly refuse: (error: unknown) => void;
}

export class Pool {
  readonly #server: Server;
  readonly #options: PoolOptions;
  readonly #outage: OutageLog;
  /** How long one who asks waits: the server cancels a statement a second earlier. */
  readonly #milliseconds: number;
  readonly #lanes: Readonly<Record<Kind, Lane>>;
  readonly #tasks = new Set<Task>();
  #checking: NodeJS.Timeout | undefined;
  /** When to connect again, while attempts fail; Infinity during one. */
  #retryAt: number | undefined;
  #renewedAt = -Infinity;
  #isClosed = false;

  constructor(server: Server, options: PoolOptions) {
    this.#server = server;
    this.#options = options;
    this.#outage = createOutageLog(options.log, server.address);
    this.#milliseconds = (options.timeoutSeconds + 1) * 1000;
    const createLane = (max: number): Lane => ({
      line: createSerial({ atOnce: max, waitingMax, toRejection: busy }),
      max,
      clients: this.#createPool(max),
    });
    const writesMax = Math.max(1, Math.floor(options.connectionsMax / 2));
    const readsMax = Math.max(1, options.connectionsMax - writesMax);
    this.#lanes = { read: createLane(readsMax), write: createLane(writesMax) };
  }

  /** Runs a statement that only reads. Runs it again if its connection was lost. */
  async read(statement: Statement, askedAt?: number): Promise<readonly Row[]> {
    return toRows(await this.#run('read', (ask) => ask(statement), askedAt));
  }

  /** As `read`, with rows as arrays of cells. */
  async readCells(statement: Statement, askedAt?: number): Promise<readonly Cells[]> {
    return (await this.#run('read', (ask) => ask(statement), askedAt)).rows;
  }

  /**
   * Runs a statement that writes, atomically, and returns the rows of its RETURNING clause. After
   * `unavailable` it may or may not be stored.
   */
  async write(statement: Statement, askedAt?: number): Promise<readonly Row[]> {
    return toRows(await this.#run('write', (ask) => ask(statement), askedAt));
  }

  /**
   * Calls `work` in a transaction: what it throws undoes all. The server ends the session of a node
   * that stops in between.
   */
  transaction<T>(work: (ask: RunStatement) => Promise<T>, askedAt = performance.now()): Promise<T> {
    const transact = async (ask: Ask): Promise<T> => {
      await ask(sql`BEGIN`);
      try {
        const inTime: RunStatement = async (statement) => {
          if (this.#isLate(askedAt)) throw lost();
          return toRows(await ask(statement));
        };
        const value = await work(inTime);
        await inTime(sql`COMMIT`);
        return value;
      } catch (error) {
        await ask(sql`ROLLBACK`).catch(() => undefined);
        throw error;
      }
    };
    return this.#run('write', transact, askedAt);
  }

  /** Waits a moment for the statements under way. */
  async close(): Promise<void> {
    const end = performance.now() + closeMilliseconds;
    while (this.#tasks.size > 0 && performance.now() < end) await pause(closePauseMilliseconds);
    this.#isClosed = true;
    clearTimeout(this.#checking);
    for (const { refuse, client } of this.#tasks) {
      refuse(lost());
      void client?.end();
    }
    this.#endPools();
  }

  #run<T>(kind: Kind, work: (ask: Ask) => Promise<T>, askedAt = performance.now()): Promise<T> {
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const answer = (settle: () => void): void => {
        if (isAnswered) return;
        isAnswered = true;
        this.#options.timed?.(kind, performance.now() - askedAt);
        settle();
      };
      const refuse = (error: unknown): void => answer(() => reject(error));
      const task: Task = { kind, askedAt, startedAt: askedAt, refuse };
      this.#tasks.add(task);
      this.#checking ??= setTimeout(() => this.#check(), checkMilliseconds);
      const { line } = this.#lanes[kind];
      void line
        .run(() => this.#attempt(task, work))
        .then((value) => answer(() => resolve(value)), refuse)
        .then(() => this.#tasks.delete(task));
    });
  }

  /** Does the work on a connection, and once more if that is known to change nothing. */
  async #attempt<T>(task: Task, work: (ask: Ask) => Promise<T>, isAgain = false): Promise<T> {
    if (this.#isClosed || this.#isLate(task.askedAt)) throw lost();
    const client = await this.#connect(this.#lanes[task.kind].clients);
    let fault: unknown;
    const ask: Ask = async (statement) => {
      task.startedAt = performance.now();
      task.client = client;
      try {
        const result = await this.#server.ask(client, statement);
        this.#outage.noteSuccess();
        return result;
      } catch (error) {
        fault = error;
        throw toStoreError(error);
      } finally {
        task.client = undefined;
      }
    };
    try {
      const value = await work(ask);
      // The COMMIT after an error that the work has caught would undo all, and say nothing.
      if (fault === undefined) return value;
    } catch (error) {
      // What the work throws by itself is no error of the connection.
      if (fault === undefined) throw error;
    } finally {
      client.release(fault !== undefined && isConnectionLost(fault));
    }
    if (this.#mayRepeat(task, fault) && !isAgain) return this.#attempt(task, work, true);
    throw toStoreError(fault);
  }

  /** Notes why a statement failed. True if it may run again. */
  #mayRepeat({ kind }: Task, fault: unknown): boolean {
    if (isAway(toStoreError(fault))) this.#outage.noteAway(fault);
    else this.#outage.noteSuccess();
    const isLost = isConnectionLost(fault);
    if (isLost || isReadOnly(fault)) this.#renew();
    return this.#server.learn(fault, this.#options.log) || (isLost && kind === 'read');
  }

  /** While nobody can connect, one attempt is made at a time, and all others are refused. */
  async #connect(clients: Clients): Promise<Client> {
    const isNew = clients.idleCount === 0;
    if (isNew && this.#retryAt !== undefined) {
      if (performance.now() < this.#retryAt) throw lost();
      this.#retryAt = Infinity;
    }
    try {
      const client = await clients.connect();
      if (isNew) this.#retryAt = undefined;
      return client;
    } catch (error) {
      this.#retryAt = performance.now() + retryMilliseconds;
      this.#server.learnRefusal(error);
      this.#outage.noteAway(error);
      throw lost();
    }
  }

  #isLate(since: number): boolean {
    return performance.now() - since >= this.#milliseconds;
  }

  #check(): void {
    for (const task of this.#tasks) {
      if (this.#isLate(task.askedAt)) task.refuse(lost());
      if (task.client !== undefined && this.#isLate(task.startedAt)) void this.#judge(task);
    }
    const isNeeded = this.#tasks.size > 0 && !this.#isClosed;
    this.#checking = isNeeded ? setTimeout(() => this.#check(), checkMilliseconds) : undefined;
  }

  /** Closes the connection of a late statement, unless the server is at work on a write. */
  async #judge(task: Task): Promise<void> {
    const judgedAt = (task.startedAt = performance.now());
    const pid = task.client && this.#server.processOf(task.client);
    const asked = sql`SELECT FROM pg_stat_activity
      WHERE pid = ${pid ?? null} AND state = 'active'
        AND wait_event_type IS DISTINCT FROM 'Client'`;
    const rows = task.kind === 'write' ? await this.read(asked).catch(() => []) : [];
    if (rows.length === 0 && task.startedAt === judgedAt) void task.client?.end();
  }

  /**
   * Replaces all connections: if one is lost, others may be dead without an error, and a session
   * that can only read may stay so after the database accepts writes. Those of statements under
   * way are closed when these are answered.
   */
  #renew(): void {
    if (performance.now() - this.#renewedAt < renewMilliseconds || this.#isClosed) return;
    this.#renewedAt = performance.now();
    this.#endPools();
    for (const lane of Object.values(this.#lanes)) lane.clients = this.#createPool(lane.max);
  }

  #createPool(max: number): Clients {
    return this.#server.createPool(max, this.#options.timeoutSeconds);
  }

  #endPools(): void {
    for (const { clients } of Object.values(this.#lanes)) {
      if (!clients.ending) void clients.end();
    }
  }
}
