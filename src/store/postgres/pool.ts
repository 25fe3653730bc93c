/**
 * The connections to PostgreSQL; only this file knows the package. Every wait is limited: a
 * statement without an answer is given up, and so is a pool in which no statement is answered.
 * While the server is away, requests are refused with `unavailable`.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type postgres from 'postgres';
import type { DriverOptions } from '../driver.ts';
import type { RecordDeps } from '../sql/records.ts';
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
export type Statement = (sql: Client) => postgres.PendingQuery<Row[]>;

export interface Pool {
  /** Runs a statement that only reads. Runs it again if its connection was lost. */
  read(statement: Statement): Promise<readonly Row[]>;
  /**
   * Runs a statement that writes, atomically, and returns the rows of its RETURNING clause. After
   * `unavailable` it may or may not be stored.
   */
  write(statement: Statement): Promise<readonly Row[]>;
  close(): Promise<void>;
}

export type PoolOptions = Pick<
  DriverOptions,
  'log' | 'connectionsMax' | 'timeoutSeconds' | 'timed'
>;

export interface Connect {
  /** Creates a client for one host of the URL. It connects when it is used. */
  (options: ConnectOptions): Client;
  /** Call it if a client reaches no primary. Returns true if the next client uses another host. */
  readonly passOver: (client: Client) => boolean;
}

export interface ConnectOptions {
  readonly connectionsMax: number;
  readonly statementSeconds: number;
  /** How long a statement may wait for a lock; undefined: as long as the statement may take. */
  readonly lockMilliseconds?: number;
  /** Called for each NOTIFY on a channel that a connection listens to. */
  readonly heard?: (channel: string, payload: string) => void;
  /** Called when a connection was closed. */
  readonly closed?: () => void;
}

/** Shared by the parts of the driver. */
export interface PostgresContext extends RecordDeps {
  readonly pool: Pool;
}

/** Minimum interval between changes of host, while all are away or being promoted. */
const passMilliseconds = 100;

/** Loads the package. */
export async function createConnect(url: string): Promise<Connect> {
  const create = await importPostgres();
  const targets = readUrl(url);
  let at = 0;
  let passedAt = 0;
  const hostOf = new WeakMap<Client, number>();
  const passOver: Connect['passOver'] = (client) => {
    // Another client has already changed the host.
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
      // Exponential backoff between attempts to connect, up to one second.
      backoff: (attempts: number) => Math.min(0.05 * 2 ** attempts, 1),
      // The package would query array types at the start, which are not used.
      fetch_types: false,
      onnotice: () => undefined,
      onnotify: heard,
      onclose: () => closed?.(),
      // No pipelining: a slow statement must not delay others on its connection.
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

/** Time limit for waiting for a lock. */
const lockMilliseconds = 1_000;
/** Limit for statements that run or wait for a connection. */
const statementsMax = 2_000;
/** Minimum interval between replacements of clients because their sessions are read-only. */
const renewMilliseconds = 1_000;
/** Long enough for the package to notice that a connection was lost. */
const retryMilliseconds = 50;

/**
 * Collects rows itself: the package's own counter is not reset after a statement that failed in the
 * middle, so that the next result would have holes.
 */
async function ask(query: ReturnType<Statement>): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const { command, count } = await query.forEach((row) => rows.push(row));
  if (command === 'SELECT' && count !== rows.length) throw new IncompleteResult();
  return rows;
}

/** Every statement has a deadline, and dead connections are replaced. */
export function createPool(connect: Connect, options: PoolOptions): Pool {
  const { log, connectionsMax, timeoutSeconds, timed } = options;
  // The server cancels a statement at its timeout; one second more is for the answer.
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
  /** A read-only session may stay so after the database accepts writes; new sessions do not. */
  const renew = (used: Client): void => {
    if (Date.now() - renewedAt < renewMilliseconds) return;
    renewedAt = Date.now();
    giveUp(used, patienceMilliseconds / 1000);
  };
  /** True if no connection has answered for so long that all count as dead. */
  const isSilent = (): boolean => Date.now() - answeredAt >= patienceMilliseconds;

  async function run(statement: Statement, kind: 'read' | 'write'): Promise<readonly Row[]> {
    if (statements >= statementsMax) throw busy();
    const startedAt = performance.now();
    statements += 1;
    const used = client;
    const deadline = createDeadline(patienceMilliseconds, () => {
      if (!isSilent()) return;
      connect.passOver(used);
      giveUp(used);
    });
    try {
      const rows = await Promise.race([ask(statement(used)), deadline.passed]);
      answeredAt = Date.now();
      noteAnswer();
      return rows;
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
      timed?.(kind, performance.now() - startedAt);
    }
  }

  return {
    write: (statement) => run(statement, 'write'),
    async read(statement) {
      try {
        return await run(statement, 'read');
      } catch (error) {
        if (!isAway(error) || isSilent()) throw error;
        await pause(retryMilliseconds);
        return run(statement, 'read');
      }
    },
    close: () => client.end({ timeout: 2 }),
  };
}

/** `passed` rejects at the deadline, and never resolves. */
export function createDeadline(milliseconds: number, expire: () => void) {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      expire();
      reject(lost());
    }, milliseconds);
  });
  return { passed, end: () => clearTimeout(timer) };
}
