/**
 * The driver on PostgreSQL (13 or newer), for any number of nodes. Acknowledged writes are in the
 * database. An operation is one statement, or a transaction that the server ends soon if its node
 * stops or its connection is lost.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import type {
  CheckOptions,
  DatabaseOptions,
  DatabaseStore,
  InitialData,
  StartOptions,
} from '../store.ts';
import { createFileList } from '../sql/files.ts';
import { addInitial, authorsOfAccounts, keepAuthors, rehearse } from '../sql/initial.ts';
import { createPorts } from '../sql/ports.ts';
import type { Sql } from '../sql/statements.ts';
import { createComments } from './comments.ts';
import { createFeed } from './feed.ts';
import { withLine, withLines } from './lines.ts';
import { type Connection, createServer, run, type Server, sql } from './client/connection.ts';
import { act, createStatements, dialect, type PostgresContext } from './statements.ts';
import { describe, isBusy, isReadOnly, toStartError } from './client/faults.ts';
import { Pool, type RunStatement } from './client/pool.ts';
import { createRequests } from './requests.ts';
import { createAskState, logRefusal, question } from './state.ts';
import { Changes } from '../changes.ts';
import { createReadAfter } from '../sql/comments-after.ts';
import { checkSchema, migrate, migrationSeconds, requireSchema } from './schema.ts';
import type { WholeDriver } from '../whole-store.ts';
import { fillPostgres, readPostgres } from './whole-store.ts';

const retryMilliseconds = 250;
/** The pause while tables that a migration changes are being read. */
const busyMilliseconds = 3_000;
/** The interval at which the log repeats what the start waits for. */
const logMilliseconds = 10_000;

export async function openStore(url: string, options: DatabaseOptions): Promise<DatabaseStore> {
  const { createId, now, initial, log, listenUrl, timeoutSeconds } = options;
  const server = await createServer(url, 'STORE_URL', options.readUrl);
  await prepare(server, options, async (connection) => {
    await migrate(connection, log);
    if (initial === undefined) return;
    await fill(connection, initial);
    await checkDurability(connection, log);
    const tooFew = server.hasSessions && (await findTooFew(connection, options.connectionsMax));
    if (tooFew) log('warn', 'database admits too few connections', { reason: tooFew });
  });
  const pool = new Pool(server, options);
  const ownListen = server.hasSessions ? server : undefined;
  const listenServer =
    listenUrl === ''
      ? ownListen
      : await createServer(listenUrl, 'STORE_LISTEN_URL', options.readUrl);
  const changes = new Changes();
  const requests = createRequests({ pool, timeoutSeconds });
  const statements = createStatements({ pool, requests, run: options.run });
  const readPage = createReadAfter(statements);
  const readAfter = async (from: number, limit: number) =>
    readPage(from, { postId: undefined, limit });
  const feed = createFeed({ pool, readAfter, listenServer, log });
  const context: PostgresContext = { pool, requests, sql: statements, createId, now };
  const ports = createPorts(context, initial?.accounts ?? []);
  return {
    ...ports,
    comments: createComments(context, feed),
    articles: withLines(ports.articles),
    askState: createAskState(pool, log),
    changes: () => changes,
    async ping() {
      await pool.read(sql`SELECT 1`);
    },
    openFileIndex: (limits) => withLine(ports.openFileIndex(limits)),
    async close() {
      feed.close();
      await pool.close();
    },
  };
}

/**
 * Reads and writes each table in a transaction that is rolled back, in tables that are made in it
 * if there are none. Tables of an older version are only looked at: a migration keeps others
 * waiting.
 */
export async function checkStore(url: string, options: CheckOptions): Promise<number> {
  const server = await createServer(url);
  let accounts = 0;
  let place = '';
  await prepare(server, options, async (connection) => {
    place = await findPlace(connection);
    const isReady = await checkSchema(connection);
    const tooFew = server.hasSessions && (await findTooFew(connection, options.connectionsMax));
    if (tooFew) throw new Error(`STORE_URL: ${tooFew}`);
    await run(connection, sql`BEGIN`);
    try {
      const [found] = await run(connection, sql`SELECT to_regclass('inkwell.posts') AS name`);
      const isNew = found?.['name'] == null;
      if (isNew) await migrate(connection, options.log);
      if (isNew || isReady)
        accounts = await act(rehearse(dialect, options.sample), askOn(connection));
    } finally {
      await run(connection, sql`ROLLBACK`);
    }
    await run(connection, question).catch((error: unknown) => logRefusal(options.log, error));
    if (!isReady) return;
    await options.checkFiles(toFiles(connection));
  });
  if (options.listenUrl !== '') {
    await tryListening(await createServer(options.listenUrl, 'STORE_LISTEN_URL'), place);
  } else if (server.hasSessions) await tryListening(server, place);
  return accounts;
}

/** The same for every connection to a database, whatever leads to it. */
async function findPlace(connection: Connection): Promise<string> {
  const text = sql`SELECT concat(current_database(), pg_postmaster_start_time()) AS place`;
  const [row] = await run(connection, text);
  return String(row?.['place']);
}

const askOn =
  (connection: Connection): RunStatement =>
  (statement) =>
    run(connection, statement);

/** One node adds the initial records to a new database: others find it done. */
async function fill(connection: Connection, initial: InitialData): Promise<void> {
  const ask = askOn(connection);
  await ask(sql`BEGIN`);
  const isNew = sql`UPDATE inkwell.schema_state SET is_filled = true WHERE NOT is_filled RETURNING 1`;
  if ((await ask(isNew)).length > 0) await act(addInitial(dialect, initial), ask);
  await act(keepAuthors(dialect, authorsOfAccounts(initial)), ask);
  await ask(sql`COMMIT`);
}

/** The lists of the index of files, on one connection. */
function toFiles(connection: Connection) {
  const ask = askOn(connection);
  const read: Sql['read'] = async (text, values) => ask({ text, values });
  const change: Sql['change'] = async (_, [, text, values]) =>
    (await read(text, values)).length > 0;
  return createFileList({ schema: 'inkwell.', read, change });
}

/** `place`: where nodes store, and announce. */
async function tryListening(server: Server, place: string): Promise<void> {
  const at = `the database at ${server.address}`;
  let found: string;
  try {
    const connection = await server.connect({ statementSeconds: 4 });
    const listening = run(connection, sql`LISTEN inkwell_comments`);
    found = await listening.then(() => findPlace(connection)).finally(() => connection.end());
  } catch (error) {
    const what = `${at} sends no notifications: ${describe(error)}`;
    throw new Error(`${server.setting}: ${what}`, { cause: error });
  }
  if (found !== place) throw new Error(`${server.setting}: ${at} is not that of STORE_URL.`);
}

/** Rejects: the database has a program for this. */
export function backUpStore(): Promise<void> {
  return Promise.reject(new Error('STORE_URL: pg_dump makes the backup of a PostgreSQL database.'));
}

export const readStore: WholeDriver['readStore'] = async (url, options, work) => {
  const server = await createServer(url);
  await prepare(server, options, requireSchema);
  return readPostgres(server, work);
};

export const fillStore: WholeDriver['fillStore'] = async (url, options, work) => {
  const server = await createServer(url);
  await prepare(server, options, async (connection) => {
    await migrate(connection, options.log);
    await options.prepare(toFiles(connection));
  });
  return fillPostgres(server, work);
};

/**
 * Runs the first statements. Waits for the server for `startSeconds`, and for other transactions as
 * long as a migration may take.
 */
async function prepare(
  server: Server,
  { log, startSeconds }: StartOptions,
  work: (connection: Connection) => Promise<void>,
): Promise<void> {
  const startedAt = performance.now();
  const isOver = (seconds: number): boolean => performance.now() - startedAt > seconds * 1000;
  const host = server.address;
  /** When each reason was last logged. */
  const logged = new Map<string, number>();
  for (;;) {
    let connection: Connection | undefined;
    try {
      connection = await server.connect({ statementSeconds: migrationSeconds });
      await work(connection);
      return;
    } catch (error) {
      if (server.learn(error, log)) continue;
      const fault = toStartError(error);
      if (fault !== undefined) throw fault;
      const [event, seconds, milliseconds] = isBusy(error)
        ? (['waiting for the tables of the database', migrationSeconds, busyMilliseconds] as const)
        : (['waiting for the database', startSeconds, retryMilliseconds] as const);
      const reason = describe(error);
      if (isOver(seconds)) {
        const what = isReadOnly(error) ? 'takes no writes' : 'does not answer';
        const message = `STORE_URL: the database at ${host} ${what}: ${reason}`;
        throw new Error(message, { cause: error });
      }
      if (performance.now() - (logged.get(reason) ?? -Infinity) >= logMilliseconds) {
        log('info', event, { host, reason });
        logged.set(reason, performance.now());
      }
      await pause(milliseconds);
    } finally {
      connection?.end();
    }
  }
}

/** Why a node would be refused connections once it needs all; a pooler has limits of its own. */
async function findTooFew(connection: Connection, connectionsMax: number) {
  const [row] = await run(
    connection,
    sql`SELECT min(most) AS most FROM (
          SELECT current_setting('max_connections')::integer AS most
          UNION ALL SELECT datconnlimit FROM pg_database WHERE datname = current_database()
          UNION ALL SELECT rolconnlimit FROM pg_roles WHERE rolname = session_user AND NOT rolsuper
        ) AS limits WHERE most >= 0`,
  );
  const [most, needed] = [Number(row?.['most']), connectionsMax + 1];
  if (most >= needed) return undefined;
  return `a node takes ${needed} connections, and may have ${most}: lower STORE_CONNECTIONS_MAX.`;
}

async function checkDurability(connection: Connection, log: Log): Promise<void> {
  const [row] = await run(connection, sql`SHOW synchronous_commit`);
  if (row?.['synchronous_commit'] !== 'off') return;
  log('warn', 'database may lose acknowledged writes', { synchronous_commit: 'off' });
}
