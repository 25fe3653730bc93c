/**
 * The driver in one file, by Node's own SQLite: what it acknowledged outlives a crash of the
 * process and a loss of power. Reads answer at once, writes after their commit. One server writes
 * to a file; another process may look at it, or add accounts to it, at any time.
 */

import type { AccountsOptions, DriverOptions, OpenedAccounts } from '../driver.ts';
import type { InitialData } from '../memory.ts';
import { authorsOfAccounts, toAuthorRow, toInitialRows } from '../rows.ts';
import { createInsert, renewAuthor } from './statements.ts';
import { createArticles } from './articles.ts';
import { type Database, openDatabase, prepareDatabase } from './database.ts';
import { createAccounts } from '../given-accounts.ts';
import { createKeptAccounts } from './accounts.ts';
import { createAuthors } from './authors.ts';
import { createComments, createPosts } from './posts.ts';
import { createTodos } from './todos.ts';
import { createWrites, type SqliteContext } from './writes.ts';
import type { Store } from '../store.ts';

export async function openSqliteStore(path: string, options: DriverOptions): Promise<Store> {
  const { initial, createId, now } = options;
  const database = await openPrepared(path, initial);
  const writes = createWrites(database);
  const context: SqliteContext = { database, writes, createId, now };
  const foreign = database.prepare('PRAGMA data_version');
  return {
    answersAtOnce: false,
    posts: createPosts(context),
    comments: createComments(context),
    authors: createAuthors(context),
    accounts: createAccounts(initial.accounts, createKeptAccounts(context)),
    todos: createTodos(context),
    articles: createArticles(context),
    // Each of the two only grows: the sum moves when this process writes, and when another does.
    revision: () => writes.revision + Number(foreign.get()?.['data_version']),
    ping: () => void foreign.get(),
    async openFileIndex(indexOptions) {
      const { createFileIndex } = await import('./files.ts');
      return createFileIndex(context, indexOptions);
    },
    close() {
      if (!database.isOpen) return;
      writes.flush();
      database.close();
    },
  };
}

/** The accounts alone: the first records of a new file are left to the server's start. */
export async function openSqliteAccounts(
  path: string,
  { now }: AccountsOptions,
): Promise<OpenedAccounts> {
  const database = await openPrepared(path);
  const writes = createWrites(database);
  return {
    accounts: createKeptAccounts({ database, writes, now }),
    close: () => database.close(),
  };
}

async function openPrepared(path: string, initial?: InitialData): Promise<Database> {
  const database = await openDatabase(path);
  try {
    prepareDatabase(database, initial && (() => fill(database, initial)));
    if (initial !== undefined) keepAuthors(database, initial);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Accounts are given anew at every start (R20); each is also an author, with the same id. */
function keepAuthors(database: Database, initial: InitialData): void {
  const keep = createInsert(database, 'authors', renewAuthor);
  for (const author of authorsOfAccounts(initial)) keep(toAuthorRow(author));
}

/** Before the first start a command may have added an account, and its author with it. */
function fill(database: Database, initial: InitialData): void {
  for (const [table, rows] of toInitialRows(initial)) {
    const insert = createInsert(database, table, 'ON CONFLICT DO NOTHING');
    for (const row of rows) insert(row);
  }
}
