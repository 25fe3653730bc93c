/**
 * The driver in one file, by Node's own SQLite: what it acknowledged outlives a crash of the
 * process and a loss of power. Reads answer at once, writes after their commit. One server writes
 * to a file; another process may look at it, or add accounts to it, at any time.
 */

import type { AccountsOptions, DriverOptions, OpenedAccounts } from '../driver.ts';
import type { InitialData } from '../memory.ts';
import { authorsOfAccounts, type Table, toAuthorRow, toInitialRows } from '../rows.ts';
import { createInsert, renewAuthor } from './statements.ts';
import { createArticles } from './articles.ts';
import { openDatabase, prepareDatabase } from './database.ts';
import { createAccounts } from '../given-accounts.ts';
import { createKeptAccounts } from './accounts.ts';
import { createAuthors } from './authors.ts';
import { createComments, createPosts } from './posts.ts';
import { createTodos } from './todos.ts';
import { createWrites, type SqliteContext, type SqliteTables } from './writes.ts';
import { createVersions } from '../reading.ts';
import type { Store } from '../store.ts';

export async function openSqliteStore(path: string, options: DriverOptions): Promise<Store> {
  const { initial, createId, now } = options;
  const tables = await openPrepared(path, initial);
  const { database } = tables;
  const writes = createWrites(database);
  const context: SqliteContext = { ...tables, writes, createId, now };
  const versions = createVersionsWithForeign(tables);
  return {
    answersAtOnce: false,
    posts: createPosts(context),
    comments: createComments(context),
    authors: createAuthors(context),
    accounts: createAccounts(initial.accounts, createKeptAccounts(context)),
    todos: createTodos(context),
    articles: createArticles(context),
    versions,
    // Reads the file.
    ping: () => void versions(),
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

/** Another process may have written anywhere: SQLite tells that it did, and not where. */
function createVersionsWithForeign({ database, versions }: SqliteTables): Store['versions'] {
  const statement = database.prepare('PRAGMA data_version');
  let foreign = statement.get()?.['data_version'];
  return () => {
    const found = statement.get()?.['data_version'];
    if (found !== foreign) for (const table of Object.keys(versions)) versions[table as Table] += 1;
    foreign = found;
    return versions;
  };
}

/** The accounts alone: the first records of a new file are left to the server's start. */
export async function openSqliteAccounts(
  path: string,
  { now }: AccountsOptions,
): Promise<OpenedAccounts> {
  const tables = await openPrepared(path);
  const { database } = tables;
  const writes = createWrites(database);
  return {
    accounts: createKeptAccounts({ ...tables, writes, now }),
    close: () => database.close(),
  };
}

async function openPrepared(path: string, initial?: InitialData): Promise<SqliteTables> {
  const database = await openDatabase(path);
  const tables = { database, versions: { ...createVersions(), accounts: 0 } };
  try {
    prepareDatabase(database, initial && (() => fill(tables, initial)));
    if (initial !== undefined) keepAuthors(tables, initial);
    return tables;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Accounts are given anew at every start (R20); each is also an author, with the same id. */
function keepAuthors(tables: SqliteTables, initial: InitialData): void {
  const keep = createInsert(tables, 'authors', renewAuthor);
  for (const author of authorsOfAccounts(initial)) keep(toAuthorRow(author));
}

/** Before the first start a command may have added an account, and its author with it. */
function fill(tables: SqliteTables, initial: InitialData): void {
  for (const [table, rows] of toInitialRows(initial)) {
    const insert = createInsert(tables, table, 'ON CONFLICT DO NOTHING');
    for (const row of rows) insert(row);
  }
}
