/**
 * The driver on one file, with Node's own SQLite. Acknowledged writes survive a crash of the
 * process and a loss of power. Reads return values; writes resolve after their commit. One server
 * writes to a file; other processes may read it, or add accounts, at any time.
 */

import type {
  DatabaseOptions,
  DatabaseStore,
  InitialData,
  Store,
  StoredAccounts,
} from '../store.ts';
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
import { createArticles, createComments, createFileIndex } from './records.ts';
import { createRemovePost } from './remove-post.ts';
import { createStatements, type SqliteContext } from './statements.ts';
import { createTransactions, type Transactions } from './transactions.ts';

export async function openStore(url: string, options: DatabaseOptions): Promise<DatabaseStore> {
  const { initial } = options;
  const path = toPath(url);
  const context = await open(path, options);
  const { database, transactions, checkFile } = context;
  const changes = createChangesWithForeign(context);
  const storedAccounts = createStored(context);
  const ports = createPorts(context, initial?.accounts ?? [], storedAccounts);
  return {
    ...ports,
    posts: { ...ports.posts, remove: createRemovePost(path, context, ports.posts) },
    comments: createComments(context),
    articles: createArticles(context),
    storedAccounts,
    changes,
    ping() {
      // This reads the file.
      changes();
      checkFile();
    },
    openFileIndex: (limits) => createFileIndex(context, limits),
    close() {
      if (!database.isOpen) return;
      transactions.flush();
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

/** Another process may have changed any table: SQLite tells that there was a write, not where. */
function createChangesWithForeign(context: SqliteContext): Store['changes'] {
  const { database, transactions, changes } = context;
  const statement = database.prepare('PRAGMA data_version');
  let foreign = statement.get()?.['data_version'];
  return () => {
    transactions.read();
    const found = statement.get()?.['data_version'];
    if (found === foreign) return changes;
    changes.countEverything();
    foreign = found;
    transactions.noticeForeign();
    return changes;
  };
}

async function open(path: string, options: DatabaseOptions) {
  const { log, initial, run, timed, mayCreate, createId, now } = options;
  const database = await openDatabase(path, mayCreate);
  try {
    const checkFile = createFileCheck(path, log);
    const transactions = checkWrites(createTransactions({ database, run, timed }), checkFile);
    const opened = { database, changes: new Changes(), transactions };
    const sql = createStatements({ ...opened, timed });
    prepareDatabase(database, log, initial && (() => fill(sql, initial)));
    announce(database);
    for (const author of initial ? authorsOfAccounts(initial) : []) keepAuthor(sql, author);
    // SQLite blocks the event loop while it waits for a lock.
    database.exec('PRAGMA busy_timeout = 10');
    return { ...opened, sql, createId, now, checkFile };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** How often writes look whether the file is still at its path. */
const checkMilliseconds = 1_000;

/** Refuses writes that would be lost with the process (see `createFileCheck`). */
function checkWrites(transactions: Transactions, checkFile: () => void): Transactions {
  let checkedAt = 0;
  return {
    ...transactions,
    async write(work) {
      if (performance.now() - checkedAt >= checkMilliseconds) {
        checkFile();
        checkedAt = performance.now();
      }
      return transactions.write(work);
    },
  };
}

/** Every account is also an author with the same id (R20), updated at every start. */
function keepAuthor(sql: SqliteContext['sql'], author: Author): void {
  sql.put(
    'authors',
    toRow(author),
    `ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email
      WHERE authors.name <> excluded.name OR authors.email <> excluded.email`,
  );
}

/** Returns a row if the record is stored now, and none if it was there. */
const unlessThere = 'ON CONFLICT DO NOTHING RETURNING 1';

/** A command may have added an account and its author before the first start. */
function fill(sql: SqliteContext['sql'], initial: InitialData): void {
  for (const [table, rows] of toInitialRows(initial)) {
    for (const row of rows) sql.put(table, row, unlessThere);
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
