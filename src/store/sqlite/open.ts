/**
 * The driver on one file, with Node's own SQLite. Acknowledged writes survive a crash of the
 * process and a loss of power. Reads return values; writes resolve after their commit. One server
 * writes to a file; other processes may read it, or add accounts, at any time.
 */

import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { CheckOptions, DatabaseOptions, DatabaseStore, InitialData } from '../store.ts';
import { tryFolder } from '../flush.ts';
import { Changes } from '../changes.ts';
import { addInitial, authorsOfAccounts, keepAuthors, rehearse } from '../sql/initial.ts';
import { createPorts } from '../sql/ports.ts';
import { backUpSqlite } from './backup.ts';
import { createFileCheck, openDatabase, prepareDatabase, rehearseMigration } from './database.ts';
import { createComments } from './comments.ts';
import { createRemovePost } from './remove-post.ts';
import { act, createRows, createStatements, dialect } from './statements.ts';
import { Transactions } from './transactions.ts';
import type { WholeDriver } from '../whole-store.ts';
import { fillSqlite, readSqlite } from './whole-store.ts';

export async function openStore(url: string, options: DatabaseOptions): Promise<DatabaseStore> {
  const path = toPath(url);
  const { database, checkFile, ...context } = await open(path, options);
  const { transactions } = context;
  const ports = createPorts(context, options.initial?.accounts ?? []);
  const changes = (): Changes => {
    transactions.countForeign();
    return context.changes;
  };
  return {
    ...ports,
    posts: { ...ports.posts, remove: createRemovePost(path, context, ports.posts) },
    comments: createComments(context),
    changes,
    ping() {
      // Counting changes reads the file.
      changes();
      checkFile();
    },
    async close() {
      if (!database.isOpen) return;
      await transactions.close();
      database.close();
    },
  };
}

/** Of a file that is not there yet, a scratch one in its folder is made instead. */
export async function checkStore(url: string, { log, sample }: CheckOptions): Promise<number> {
  const path = toPath(url);
  const folder = dirname(path);
  await tryFolder('STORE_URL', folder);
  if (existsSync(path)) return tryWrites(path, sample);
  const scratch = await mkdtemp(join(folder, 'inkwell-check-'));
  try {
    const file = join(scratch, 'scratch.db');
    const database = await openDatabase(file, true);
    try {
      prepareDatabase(database, log);
    } finally {
      database.close();
    }
    return await tryWrites(file, sample);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Does in a transaction that is rolled back what a start does. Returns the accounts. */
async function tryWrites(path: string, sample: InitialData): Promise<number> {
  const database = await openDatabase(path, false);
  try {
    const rows = createRows(database, new Changes());
    return rehearseMigration(database, () => act(rows, rehearse(dialect, sample)));
  } finally {
    database.close();
  }
}

export async function backUpStore(url: string, file: string): Promise<void> {
  await backUpSqlite(toPath(url), file);
}

export const readStore: WholeDriver['readStore'] = (url, _options, work) =>
  readSqlite(toPath(url), work);

export const fillStore: WholeDriver['fillStore'] = (url, options, work) =>
  fillSqlite(toPath(url), options, work);

/** `sqlite:///var/lib/inkwell.db` → `/var/lib/inkwell.db`; percent-escapes are decoded. */
function toPath(url: string): string {
  // What looks like parameters would be a part of the file's name.
  if (/[?#]/.test(url)) {
    throw new Error('STORE_URL: a path has no parameters. Write ? in a name as %3F, # as %23.');
  }
  if (url.includes('%00')) throw new Error('STORE_URL: no path has a zero byte (%00).');
  try {
    return decodeURIComponent(url.slice('sqlite://'.length));
  } catch {
    throw new Error('STORE_URL: the path holds a % that encodes nothing.');
  }
}

async function open(path: string, options: DatabaseOptions) {
  const { log, initial, run, timed, mayCreate, createId, now } = options;
  const database = await openDatabase(path, mayCreate);
  try {
    const checkFile = createFileCheck(path, log);
    const changes = new Changes();
    const rows = createRows(database, changes);
    prepareDatabase(database, log, initial && (() => act(rows, addInitial(dialect, initial))));
    if (initial) act(rows, keepAuthors(dialect, authorsOfAccounts(initial)));
    // SQLite blocks the event loop while it waits for a lock.
    database.exec('PRAGMA busy_timeout = 10');
    const transactions = new Transactions({ database, changes, run, log, checkFile, timed });
    const sql = createStatements({ rows, transactions, timed });
    return { database, checkFile, changes, transactions, sql, createId, now };
  } catch (error) {
    database.close();
    throw error;
  }
}
