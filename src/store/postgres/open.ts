/**
 * The driver on PostgreSQL (13 or newer), for any number of nodes. Acknowledged writes are in the
 * database. Every operation is one statement, and so one transaction: a node that stops, or a lost
 * connection, leaves none open.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { AccountsOptions, DriverOptions, OpenedAccounts } from '../driver.ts';
import { createPorts } from '../sql/records.ts';
import { createKept } from './accounts.ts';
import { createArticles } from './articles.ts';
import { createComments, openFeed } from './comments.ts';
import { createFileIndex } from './files.ts';
import { describeAway, lacksTls, toStartError } from './faults.ts';
import {
  type Client,
  type Connect,
  createConnect,
  createPool,
  type PostgresContext,
} from './pool.ts';
import { fill, keepAuthors, migrate, migrationSeconds } from './schema.ts';
import { createStatements } from './statements.ts';
import { hasSessions } from './url.ts';
import type { Store } from '../store.ts';

type Waiting = Pick<AccountsOptions, 'log' | 'startSeconds'>;
const startRetryMilliseconds = 250;
/** The interval at which the log repeats what the start waits for. */
const startLogMilliseconds = 10_000;

export async function openPostgresStore(
  url: string,
  options: DriverOptions & Waiting,
): Promise<Store> {
  const { createId, now, initial, log, connectionsMax, timeoutSeconds, timed } = options;
  const connect = await createConnect(url);
  await whenThere(connect, options, async (sql) => {
    await migrate(sql);
    await fill(sql, initial);
    await keepAuthors(sql, initial);
  });
  const pool = createPool(connect, { log, connectionsMax, timeoutSeconds, timed });
  const { listenUrl } = options;
  // Undefined if notifications cannot be received.
  const ownListen = hasSessions(url) ? connect : undefined;
  const listen = listenUrl === '' ? ownListen : await createConnect(listenUrl);
  const feed = await openFeed({ pool, connect: listen, log, timeoutSeconds, nodeId: randomUUID() });
  const sql = createStatements(pool, connectionsMax);
  const context: PostgresContext = { pool, sql, createId, now };
  return {
    ...createPorts(context, initial.accounts, createKept(context)),
    comments: createComments(context, feed),
    articles: createArticles(context),
    // Other nodes write too, so that a cached response could be out of date at any time.
    versions: () => undefined,
    placed: () => feed.placed(),
    async ping() {
      await sql.read('SELECT 1', []);
    },
    openFileIndex: (given) => createFileIndex(context, given),
    async close() {
      await feed.close();
      await pool.close();
    },
  };
}

/** Leaves the initial records to the start of the first node. */
export async function openPostgresAccounts(
  url: string,
  options: AccountsOptions,
): Promise<OpenedAccounts> {
  const { now, log, timeoutSeconds } = options;
  const connect = await createConnect(url);
  await whenThere(connect, options, migrate);
  const pool = createPool(connect, { log, connectionsMax: 1, timeoutSeconds });
  const sql = createStatements(pool, 1);
  return {
    accounts: createKept({ pool, sql, now }),
    openFileIndex: (given) => createFileIndex({ pool, sql }, given),
    close: () => pool.close(),
  };
}

/** Repeats the first work until the server is available, for `startSeconds`. */
async function whenThere(
  connect: Connect,
  { log, startSeconds }: Waiting,
  work: (sql: Client) => Promise<void>,
): Promise<void> {
  const end = Date.now() + startSeconds * 1000;
  /** When each host and reason was last logged. */
  const logged = new Map<string, number>();
  for (;;) {
    const sql = connect({ connectionsMax: 1, statementSeconds: migrationSeconds });
    try {
      await work(sql);
      return;
    } catch (error) {
      const fault = toStartError(error);
      if (fault !== undefined) throw fault;
      connect.passOver(sql);
      const { host, reason } = describeAway(sql, error);
      if (await lacksTls(sql)) {
        throw new Error(`STORE_URL: the database at ${host} has no TLS.`, { cause: error });
      }
      const at = Date.now();
      if (at > end) {
        const message = `STORE_URL: the database at ${host} does not answer: ${reason}`;
        throw new Error(message, { cause: error });
      }
      const line = `${host} ${reason}`;
      if (at - (logged.get(line) ?? 0) >= startLogMilliseconds) {
        log('info', 'waiting for the database', { host, reason });
        logged.set(line, at);
      }
      await pause(startRetryMilliseconds);
    } finally {
      await sql.end({ timeout: 1 });
    }
  }
}
