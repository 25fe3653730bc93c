/**
 * A few connections that share all statements. Every wait is limited: a statement without an answer
 * is given up, and so is a connection that does not answer. While the server is away, requests are
 * refused with `unavailable`, and one attempt to connect is made at a time.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { DriverOptions } from '../driver.ts';
import type { Row } from '../sql/rows.ts';
import type { Connection, Server, Statement } from './connection.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
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

export type PoolOptions = Pick<
  DriverOptions,
  'log' | 'connectionsMax' | 'timeoutSeconds' | 'timed'
>;

/** Limit for statements that run or wait for a connection. */
const statementsMax = 2_000;
/** Minimum interval between replacements of all connections because their sessions only read. */
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
  readonly askedAt: number;
  /** It may run again if its connection is lost. */
  repeatable: boolean;
  readonly resolve: (rows: readonly Row[]) => void;
  readonly reject: (error: unknown) => void;
}

/** A connection of the pool. */
interface Member {
  readonly connection: Connection;
  readonly openedAt: number;
  startedAt: number;
}

export class Pool {
  readonly #server: Server;
  readonly #options: PoolOptions;
  readonly #outage: OutageLog;
  readonly #tasks: Deadlines<Task>;
  readonly #running: Deadlines<Member>;
  readonly #members = new Set<Member>();
  readonly #idle: Member[] = [];
  #queue: Task[] = [];
  #connecting = 0;
  /** Failed attempts to connect since the last successful one. */
  #failures = 0;
  #pausing: NodeJS.Timeout | undefined;
  #answeredAt = 0;
  #renewedAt = -Infinity;
  #closed = false;

  constructor(server: Server, options: PoolOptions) {
    this.#server = server;
    this.#options = options;
    this.#outage = createOutageLog(options.log, server.address);
    // The server cancels a statement at its timeout; one second more is for the answer.
    const answerSeconds = options.timeoutSeconds + 1;
    this.#tasks = createDeadlines(answerSeconds * 1000, (task) => {
      this.#queue = this.#queue.filter((waiting) => waiting !== task);
      this.#finish(task, lost());
    });
    this.#running = createDeadlines(answerSeconds * 1000, (member) => {
      this.#outage.noteAway(new Error(`no answer within ${answerSeconds} s`));
      // If none has answered meanwhile, all count as dead.
      const dead = this.#answeredAt < member.startedAt ? [...this.#members] : [member];
      for (const each of dead) void this.#remove(each);
      this.#advance();
    });
  }

  /** Runs a statement that only reads. Runs it again if its connection was lost. */
  read(statement: Statement): Promise<readonly Row[]> {
    return this.#ask(statement, 'read');
  }

  /**
   * Runs a statement that writes, atomically, and returns the rows of its RETURNING clause. After
   * `unavailable` it may or may not be stored.
   */
  write(statement: Statement): Promise<readonly Row[]> {
    return this.#ask(statement, 'write');
  }

  /** Waits a moment for the statements under way. */
  async close(): Promise<void> {
    const end = performance.now() + closeMilliseconds;
    while (this.#tasks.size > 0 && performance.now() < end) await pause(closePauseMilliseconds);
    this.#closed = true;
    clearTimeout(this.#pausing);
    this.#refuseWaiting();
    await Promise.all([...this.#members].map((member) => this.#remove(member)));
  }

  #ask(statement: Statement, kind: Task['kind']): Promise<readonly Row[]> {
    if (this.#tasks.size >= statementsMax) return Promise.reject(busy());
    return new Promise((resolve, reject) => {
      const askedAt = performance.now();
      const repeatable = kind === 'read';
      const task: Task = { statement, kind, askedAt, repeatable, resolve, reject };
      this.#tasks.add(task);
      this.#queue.push(task);
      this.#advance();
    });
  }

  /** Starts what waits, as far as there are connections, and opens more of them. */
  #advance(): void {
    while (this.#queue.length > 0) {
      const member = this.#idle.pop();
      if (member === undefined) break;
      const task = this.#queue.shift();
      if (task !== undefined) this.#start(member, task);
    }
    const free = this.#options.connectionsMax - this.#members.size;
    const wanted = Math.min(this.#queue.length, this.#failures > 0 ? 1 : free, free);
    while (this.#connecting < wanted && this.#pausing === undefined && !this.#closed) {
      void this.#connect();
    }
  }

  async #connect(): Promise<void> {
    this.#connecting += 1;
    let member: Member | undefined;
    try {
      const openedAt = performance.now();
      const connection = await this.#server.connect({
        statementSeconds: this.#options.timeoutSeconds,
        onClosed: () => member && void this.#remove(member),
      });
      member = { connection, openedAt, startedAt: 0 };
      this.#members.add(member);
      this.#failures = 0;
      this.#release(member);
    } catch (error) {
      this.#outage.noteAway(error);
      this.#pauseAfter(this.#failures);
      this.#failures += 1;
      if (this.#members.size === 0) this.#refuseWaiting();
    }
    this.#connecting -= 1;
    this.#advance();
  }

  #pauseAfter(failures: number): void {
    this.#pausing ??= setTimeout(
      () => {
        this.#pausing = undefined;
        this.#advance();
      },
      Math.min(pauseMilliseconds * 2 ** failures, pauseMillisecondsMax),
    );
  }

  #refuseWaiting(): void {
    for (const task of this.#queue.splice(0)) this.#settle(task, lost());
  }

  #start(member: Member, task: Task): void {
    member.startedAt = performance.now();
    this.#running.add(member);
    member.connection.run(task.statement, (error, rows) => {
      this.#running.delete(member);
      if (error instanceof Error) this.#fail(member, task, error);
      else {
        this.#outage.noteAnswer();
        this.#settle(task, undefined, rows);
      }
      if (this.#members.has(member)) this.#answeredAt = performance.now();
      this.#release(member);
      this.#advance();
    });
  }

  #fail(member: Member, task: Task, error: Error): void {
    const fault = toStoreError(error);
    if (isAway(fault)) this.#outage.noteAway(error);
    else this.#outage.noteAnswer();
    if (isReadOnly(error)) this.#renew();
    const isLost = isConnectionLost(error);
    if (isLost) void this.#remove(member);
    if (isLost && task.repeatable && !this.#closed) {
      task.repeatable = false;
      this.#queue.unshift(task);
    } else this.#settle(task, fault);
  }

  #settle(task: Task, fault: unknown, rows: readonly Row[] = []): void {
    // False if its time is over.
    if (this.#tasks.delete(task)) this.#finish(task, fault, rows);
  }

  #finish({ kind, askedAt, resolve, reject }: Task, fault: unknown, rows: readonly Row[] = []) {
    this.#options.timed?.(kind, performance.now() - askedAt);
    if (fault === undefined) resolve(rows);
    else reject(fault);
  }

  /** A read-only session may stay so after the database accepts writes; new sessions do not. */
  #renew(): void {
    if (performance.now() - this.#renewedAt < renewMilliseconds) return;
    this.#renewedAt = performance.now();
    for (const member of this.#idle.splice(0)) void this.#remove(member);
  }

  /** Makes a connection available for the next statement. */
  #release(member: Member): void {
    if (this.#closed || member.openedAt < this.#renewedAt) void this.#remove(member);
    else if (this.#members.has(member)) this.#idle.push(member);
  }

  /** Closes a connection. Its statement, if there is one, fails. */
  async #remove(member: Member): Promise<void> {
    if (!this.#members.delete(member)) return;
    this.#running.delete(member);
    if (this.#idle.includes(member)) this.#idle.splice(this.#idle.indexOf(member), 1);
    await member.connection.end();
  }
}
