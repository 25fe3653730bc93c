/**
 * The driver on one file, with Node's own SQLite. Acknowledged writes survive a crash of the
 * process and a loss of power. Reads return values; writes resolve after their commit. One server
 * writes to a file; other processes may read it, or add accounts, at any time.
 */

import type { DatabaseOptions, DatabaseStore, InitialData, StoredAccounts } from '../store.ts';
import { Changes } from '../changes.ts';
import type { Author } from '../model.ts';
import { createPorts, createStoredAccounts } from '../sql/ports.ts';
import { authorsOfAccounts, toInitialRows, toRow } from '../sql/rows.ts';
import { backUpSqlite } from './backup.ts';
import {
  announce,
  checkSqlite,
  createFileCheck,
  openDatabase,
  prepareDatabase,
} from './database.ts';
import { createArticles, createComments, createFileIndex } from './ports.ts';
import { createRemovePost } from './remove-post.ts';
import { createRows, createStatements, type SqliteContext, type SqliteRows } from './statements.ts';
import { Transactions } from './transactions.ts';

export async function openStore(url: string, options: DatabaseOptions): Promise<DatabaseStore> {
  const path = toPath(url);
  const { database, checkFile, ...context } = await open(path, options);
  const { transactions } = context;
  const storedAccounts = createStored(context);
  const ports = createPorts(context, options.initial?.accounts ?? [], storedAccounts);
  const changes = (): Changes => {
    transactions.countForeign();
    return context.changes;
  };
  return {
    ...ports,
    posts: { ...ports.posts, remove: createRemovePost(path, context, ports.posts) },
    comments: createComments(context),
    articles: createArticles(context),
    storedAccounts,
    changes,
    ping() {
      // Counting changes reads the file.
      changes();
      checkFile();
    },
    openFileIndex: (limits) => createFileIndex(context, limits),
    async close() {
      if (!database.isOpen) return;
      await transactions.close();
      database.close();
    },
  };
}

export async function checkStore(url: string): Promise<void> {
  await checkSqlite(toPath(url));
}

export async function backUpStore(url: string, file: string): Promise<void> {
  await backUpSqlite(toPath(url), file);
}

/** `sqlite:///var/lib/inkwell.db` → `/var/lib/inkwell.db`; percent-escapes are decoded. */
function toPath(url: string): string {
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
    prepareDatabase(database, log, initial && (() => fill(rows, initial)));
    announce(database);
    for (const author of initial ? authorsOfAccounts(initial) : []) keepAuthor(rows, author);
    // SQLite blocks the event loop while it waits for a lock.
    database.exec('PRAGMA busy_timeout = 10');
    const transactions = new Transactions({ database, changes, run, checkFile, timed });
    const sql = createStatements({ rows, transactions, timed });
    return { database, checkFile, changes, transactions, sql, createId, now };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Every account is also an author with the same id (R20), updated at every start. */
function keepAuthor(rows: SqliteRows, author: Author): void {
  rows.put(
    'authors',
    toRow(author),
    `ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email
      WHERE authors.name <> excluded.name OR authors.email <> excluded.email`,
  );
}

/** Returns a row if the record is stored now, and none if it was there. */
const unlessThere = 'ON CONFLICT DO NOTHING RETURNING 1';

/** A command may have added an account and its author before the first start. */
function fill(rows: SqliteRows, initial: InitialData): void {
  for (const [table, initialRows] of toInitialRows(initial)) {
    for (const row of initialRows) rows.put(table, row, unlessThere);
  }
}

function createStored({ sql, transactions, now }: SqliteContext): StoredAccounts {
  return createStoredAccounts(sql, (account) =>
    transactions.write(() => {
      if (sql.put('accounts', toRow(account), unlessThere).length === 0) return false;
      const { id, username: name, email } = account;
      keepAuthor(sql, { id, name, email, createdAt: now() });
      return true;
    }),
  );
}
