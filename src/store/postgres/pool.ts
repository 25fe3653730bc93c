/**
 * The connections to PostgreSQL, and the one place that knows its package. Every wait has an end:
 * a statement that the server does not answer in time is given up, and so is a pool in which no
 * statement is answered. While the server is away, requests are refused with `unavailable`.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type postgres from 'postgres';
import type { Log } from '../../log.ts';
import type { Sql } from '../sql/sql.ts';
import {
  busy,
  createOutageLog,
  IncompleteResult,
  isAway,
  isOutOfReach,
  isReadOnly,
  lost,
  toStoreError,
} from './faults.ts';
import { hasSessions, readUrl } from './url.ts';

export type Client = postgres.Sql;
export type Row = postgres.Row;
type Statement = (sql: Client) => postgres.PendingQuery<Row[]>;

export interface Pool {
  /** The rows of a statement that only reads: sent once more where its connection was lost. */
  read(statement: Statement): Promise<readonly Row[]>;
  /** What a statement writes is kept whole or not at all; after `unavailable` it may be either. */
  write(statement: Statement): Promise<readonly Row[]>;
  /** The same, for how many rows were written. */
  count(statement: Statement): Promise<number>;
  close(): Promise<void>;
}

export interface PoolOptions {
  readonly log: Log;
  readonly connectionsMax: number;
  readonly timeoutSeconds: number;
}

export interface Connect {
  /** Connections to one host of the URL: they are made when they are needed. */
  (options: ConnectOptions): Client;
  /** Where this one reaches no primary. True: the next client goes to another host. */
  readonly passOver: (client: Client) => boolean;
}

export interface ConnectOptions {
  readonly connectionsMax: number;
  readonly statementSeconds: number;
  /** How long a statement waits for a lock; undefined: as long as it may take. */
  readonly lockMilliseconds?: number;
  /** For every NOTIFY on a channel that a connection listens to. */
  readonly heard?: (channel: string, payload: string) => void;
  /** Whenever a connection has ended. */
  readonly closed?: () => void;
}

/** What the parts of the driver share. */
export interface PostgresContext {
  readonly pool: Pool;
  readonly sql: Sql;
  readonly createId: () => string;
  /** The local date-time of now, as records keep it. */
  readonly now: () => string;
}

/** Servers that are all away, or being promoted, are not asked by each request. */
const passMilliseconds = 100;

/** Loads the package. */
export async function createConnect(url: string): Promise<Connect> {
  const create = await importPostgres();
  const targets = readUrl(url);
  let at = 0;
  let passedAt = 0;
  const hostOf = new WeakMap<Client, number>();
  const passOver: Connect['passOver'] = (client) => {
    // Another client has passed over it before.
    if (hostOf.get(client) !== at) return true;
    if (targets.length === 1 || Date.now() - passedAt < passMilliseconds) return false;
    passedAt = Date.now();
    at = (at + 1) % targets.length;
    return true;
  };
  const connect = ({
    connectionsMax,
    statementSeconds,
    lockMilliseconds,
    heard,
    closed,
  }: ConnectOptions): Client => {
    const target = targets[at];
    const options = {
      ...target?.options,
      max: connectionsMax,
      connect_timeout: 5,
      // Without an answer to the first one the next attempts come at a slower pace, up to this.
      backoff: (attempts: number) => Math.min(0.05 * 2 ** attempts, 1),
      // The types of arrays, which it would ask for at the start, are not used.
      fetch_types: false,
      onnotice: () => undefined,
      onnotify: heard,
      onclose: () => closed?.(),
      // One that waits holds up none behind it: each is sent over a connection that is free.
      max_pipeline: 0,
      connection: {
        application_name: 'inkwell',
        ...(hasSessions(url) && {
          statement_timeout: statementSeconds * 1000,
          ...(lockMilliseconds !== undefined && { lock_timeout: lockMilliseconds }),
        }),
      },
    };
    const client = create(target?.url ?? url, options);
    hostOf.set(client, at);
    return client;
  };
  return Object.assign(connect, { passOver });
}

async function importPostgres(): Promise<typeof postgres> {
  try {
    return (await import('postgres')).default;
  } catch (error) {
    const needed = 'postgres:// needs one more package: npm install postgres';
    throw new Error(`STORE_URL: ${needed}`, { cause: error });
  }
}

/** A statement that waits longer for a lock is given up. */
const lockMilliseconds = 1_000;
/** Statements under way, those that wait for a connection among them. */
const statementsMax = 2_000;
/** Connections that only read are renewed no more often. */
const renewMilliseconds = 1_000;
/** Longer than a connection that was lost needs to be known as closed. */
const retryMilliseconds = 50;

export function createPool(connect: Connect, options: PoolOptions): Pool {
  const { run, end } = createRunner(connect, options);
  return {
    read: async (statement) => (await run(statement, 2)).rows,
    write: async (statement) => (await run(statement, 1)).rows,
    count: async (statement) => (await run(statement, 1)).count,
    close: end,
  };
}

interface Answer {
  readonly rows: readonly Row[];
  /** Rows that were read or written, as the server counts them. */
  readonly count: number;
}

/**
 * Rows are gathered here, one by one. The package counts those that it gathers on the connection,
 * and does not start again after a statement that failed behind some: the next result had holes.
 */
async function ask(query: ReturnType<Statement>): Promise<Answer> {
  const rows: Row[] = [];
  const { command, count } = await query.forEach((row) => rows.push(row));
  if (command === 'SELECT' && count !== rows.length) throw new IncompleteResult();
  return { rows, count };
}

interface Runner {
  /** A statement that was sent over a connection that was lost is sent again, up to `attempts`. */
  readonly run: (statement: Statement, attempts: 1 | 2) => Promise<Answer>;
  readonly end: () => Promise<void>;
}

/** Runs each statement under a deadline; replaces connections that are dead. */
function createRunner(connect: Connect, options: PoolOptions): Runner {
  const { log, connectionsMax, timeoutSeconds } = options;
  // The server ends a statement after its time; the second more is for its answer.
  const patienceMilliseconds = timeoutSeconds * 1000 + 1000;
  const newClient = (): Client =>
    connect({ connectionsMax, statementSeconds: timeoutSeconds, lockMilliseconds });
  let client = newClient();
  let statements = 0;
  let answeredAt = Date.now();
  let renewedAt = 0;
  const { noteAnswer, noteAway } = createOutageLog(log);

  const giveUp = (used: Client, endSeconds = 0): void => {
    if (used !== client) return;
    client = newClient();
    used.end({ timeout: endSeconds }).catch(() => undefined);
  };
  /** A session that only reads may stay so when the database writes again: later ones do not. */
  const renew = (used: Client): void => {
    if (Date.now() - renewedAt < renewMilliseconds) return;
    renewedAt = Date.now();
    giveUp(used, patienceMilliseconds / 1000);
  };
  /** Connections without an answer for so long are taken for dead, though they look open. */
  const isSilent = (): boolean => Date.now() - answeredAt >= patienceMilliseconds;

  async function runOnce(statement: Statement): Promise<Answer> {
    if (statements >= statementsMax) throw busy();
    statements += 1;
    const used = client;
    const deadline = createDeadline(patienceMilliseconds, () => {
      if (!isSilent()) return;
      connect.passOver(used);
      giveUp(used);
    });
    try {
      const answer = await Promise.race([ask(statement(used)), deadline.passed]);
      answeredAt = Date.now();
      noteAnswer();
      return answer;
    } catch (error) {
      if (error instanceof IncompleteResult) giveUp(used);
      if (isReadOnly(error)) renew(used);
      if (isOutOfReach(error) && connect.passOver(used)) giveUp(used, patienceMilliseconds / 1000);
      const fault = toStoreError(error);
      if (isAway(fault)) noteAway(used, error);
      else noteAnswer();
      throw fault;
    } finally {
      deadline.end();
      statements -= 1;
    }
  }

  async function run(statement: Statement, attempts: 1 | 2): Promise<Answer> {
    try {
      return await runOnce(statement);
    } catch (error) {
      if (attempts === 1 || !isAway(error) || isSilent()) throw error;
      await pause(retryMilliseconds);
      return runOnce(statement);
    }
  }

  return { run, end: () => client.end({ timeout: 2 }) };
}

interface Deadline {
  /** Rejects when the time is over; never resolves. */
  readonly passed: Promise<never>;
  readonly end: () => void;
}

export function createDeadline(milliseconds: number, expire: () => void): Deadline {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      expire();
      reject(lost());
    }, milliseconds);
  });
  return { passed, end: () => clearTimeout(timer) };
}
