/**
 * The driver on PostgreSQL (13 or newer), for any number of nodes. Acknowledged writes are in the
 * database. Every operation is one statement, and so one transaction: a node that stops, or a lost
 * connection, leaves none open.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../errors.ts';
import type { Log } from '../../log.ts';
import {
  type DurableFileIndex,
  type FileLimits,
  type ReplacedFile,
  tooManyFiles,
} from '../file-index.ts';
import type {
  CheckOptions,
  DatabaseOptions,
  DatabaseStore,
  Once,
  StartOptions,
  StoredAccounts,
} from '../store.ts';
import {
  createFileList,
  createFileStatements,
  createPorts,
  createStoredAccounts,
} from '../sql/ports.ts';
import { escapeText, toRow } from '../sql/rows.ts';
import type { Sql } from '../sql/statements.ts';
import { createArticles } from './articles.ts';
import { createComments } from './comments.ts';
import { CommentFeed } from './feed.ts';
import {
  type Connection,
  createServer,
  run,
  type Server,
  sql,
  type Statement,
} from './connection.ts';
import { createStatements, type PostgresContext } from './statements.ts';
import { describe, isBusy, toStartError } from './faults.ts';
import { Pool } from './pool.ts';
import { createRequests, withKey } from './requests.ts';
import { createVersions } from './versions.ts';
import { checkSchema, migrate, migrationSeconds, toAuthors, toFill } from './schema.ts';

const retryMilliseconds = 250;
/** The pause while tables that a migration changes are being read. */
const busyMilliseconds = 3_000;
/** The interval at which the log repeats what the start waits for. */
const logMilliseconds = 10_000;

export async function openStore(url: string, options: DatabaseOptions): Promise<DatabaseStore> {
  const { createId, now, initial, log, listenUrl, timeoutSeconds } = options;
  const server = await createServer(url);
  await prepare(server, options, async (connection) => {
    await migrate(connection, log);
    if (initial === undefined) return;
    await run(connection, toFill(initial));
    await run(connection, toAuthors(initial));
    await checkDurability(connection, log);
  });
  const pool = new Pool(server, options);
  const ownListen = server.hasSessions ? server : undefined;
  const listenServer = listenUrl === '' ? ownListen : await createServer(listenUrl);
  const versions = createVersions(pool);
  const feed = new CommentFeed({ pool, versions, listenServer, log, timeoutSeconds });
  const requests = createRequests({ pool, versions, timeoutSeconds });
  const statements = createStatements({ pool, versions, requests });
  const context: PostgresContext = { pool, versions, requests, sql: statements, createId, now };
  const storedAccounts = createStored(context);
  return {
    ...createPorts(context, initial?.accounts ?? [], storedAccounts),
    storedAccounts,
    comments: createComments(context, feed),
    articles: createArticles({ ...context, run: options.run }),
    changes: versions.changes,
    readChanges: versions.readChanges,
    readsSent: () => pool.reads,
    async ping() {
      await pool.read(sql`SELECT 1`);
    },
    openFileIndex: (limits) => createFileIndex(context, limits),
    async close() {
      feed.close();
      await pool.close();
    },
  };
}

/** Rejects if a start would refuse the database, or its folder of files. */
export async function checkStore(url: string, options: CheckOptions): Promise<void> {
  await prepare(await createServer(url), options, async (connection) => {
    if (!(await checkSchema(connection))) return;
    const read: Sql['write'] = (_, text, values) => run(connection, { text, values });
    const statements = { schema: 'inkwell.', write: read, read: read.bind(undefined, '') };
    await options.checkFiles(createFileList(statements));
  });
}

/** Rejects: the database has a program for this. */
export function backUpStore(): Promise<void> {
  return Promise.reject(new Error('STORE_URL: pg_dump makes the backup of a PostgreSQL database.'));
}

/** Stored accounts, for the nodes and for the command that changes them. */
function createStored({ pool, sql: statements, now }: PostgresContext): StoredAccounts {
  return createStoredAccounts(statements, async (account) => {
    const rows = await pool.write(
      sql`WITH added AS (
            INSERT INTO inkwell.accounts
            SELECT * FROM json_populate_record(
              null::inkwell.accounts, ${JSON.stringify(toRow(account))}::text::json)
            ON CONFLICT DO NOTHING RETURNING id, username, email
          )
          INSERT INTO inkwell.authors (id, name, email, created_at)
          SELECT id, username, email, ${now()} FROM added
          ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email
          RETURNING 1`,
    );
    return rows.length === 1;
  });
}

/** A commit is a function in the database, so that the limits apply to the files of all nodes. */
function createFileIndex(
  { sql: statements, pool, requests }: PostgresContext,
  limits: FileLimits,
): DurableFileIndex {
  return {
    ...createFileStatements(statements),
    async commit(files, { once, onlyNew = false } = {}) {
      const name = onlyNew ? 'store_new_files' : 'store_files';
      const text = `SELECT inkwell.${name}($1::text::json, $2, $3)::text AS replaced`;
      const entries = files.map(({ storedName, temporaryName, size }, at) => {
        return { at, stored_name: escapeText(storedName), disk_name: temporaryName, size };
      });
      const values = [JSON.stringify(entries), limits.filesMax, limits.bytesMax];
      const store = async (statement: Statement): Promise<readonly ReplacedFile[] | undefined> => {
        const replaced = (await pool.write(statement))[0]?.['replaced'];
        if (typeof replaced !== 'string') return undefined;
        return JSON.parse(replaced) as ReplacedFile[]; // as the function writes it
      };
      // If the function returns no result, it has stored no file, and no key is stored.
      const keyedText = `SELECT * FROM (${text}) AS stored WHERE replaced IS NOT NULL`;
      const storeOnce = (by: Once) =>
        requests
          .run(by, () => {
            const statement = { text: keyedText, values: [...values, by.id ?? ''] };
            return store(withKey(statement, by, { result: '$4' }));
          })
          // Under the same key, the names that are stored may be those of the first.
          .catch(async (error: unknown) => {
            const first = codeOf(error) === 'precondition_failed' && (await requests.find(by));
            if (first === false || first === undefined) throw error;
            return first;
          });
      const stored = await (once ? storeOnce(once) : store({ text, values }));
      if (stored === undefined) throw tooManyFiles(limits);
      return stored;
    },
  };
}

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
      const fault = toStartError(error);
      if (fault !== undefined) throw fault;
      const [event, seconds, milliseconds] = isBusy(error)
        ? (['waiting for the tables of the database', migrationSeconds, busyMilliseconds] as const)
        : (['waiting for the database', startSeconds, retryMilliseconds] as const);
      const reason = describe(error);
      if (isOver(seconds)) {
        const message = `STORE_URL: the database at ${host} does not answer: ${reason}`;
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

async function checkDurability(connection: Connection, log: Log): Promise<void> {
  const [row] = await run(connection, sql`SHOW synchronous_commit`);
  if (row?.['synchronous_commit'] !== 'off') return;
  log('warn', 'database may lose acknowledged writes', { synchronous_commit: 'off' });
}
