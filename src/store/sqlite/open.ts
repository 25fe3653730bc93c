/**
 * The driver in one file, by Node's own SQLite: what it acknowledged outlives a crash of the
 * process and a loss of power. Reads answer at once, writes after their commit. One server writes
 * to a file; another process may look at it, or add accounts to it, at any time.
 */

import type { AccountsOptions, DriverOptions, OpenedAccounts } from '../driver.ts';
import type { InitialData } from '../memory.ts';
import { createArticles } from './articles.ts';
import { type Database, openDatabase, prepareDatabase } from './database.ts';
import { createAccounts } from '../given-accounts.ts';
import { createKeptAccounts } from './accounts.ts';
import { createAuthors } from './authors.ts';
import { createComments, createPosts } from './posts.ts';
import { createTodos } from './todos.ts';
import { createWrites, type SqliteContext } from './writes.ts';
import type { Store } from '../store.ts';
import { escapeText } from '../text-escape.ts';

export async function openSqliteStore(path: string, options: DriverOptions): Promise<Store> {
  const { initial, createId, now } = options;
  const database = await openDatabase(path);
  try {
    prepareDatabase(database, () => fill(database, initial));
    keepAuthors(database, accountAuthors(initial));
  } catch (error) {
    database.close();
    throw error;
  }
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
  const database = await openDatabase(path);
  try {
    prepareDatabase(database);
    const writes = createWrites(database);
    return {
      accounts: createKeptAccounts({ database, writes, now }),
      close: () => database.close(),
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Accounts are given anew at every start (R20); each is also an author, with the same id. */
function accountAuthors({ accounts, authors }: InitialData): InitialData['authors'] {
  const ids = new Set(accounts.map(({ id }) => id));
  return authors.filter(({ id }) => ids.has(id));
}

function keepAuthors(database: Database, authors: InitialData['authors']): void {
  const keep = database.prepare(
    `INSERT INTO authors (id, name, email, created_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email`,
  );
  for (const { id, name, email, createdAt } of authors) {
    keep.run(id, escapeText(name), escapeText(email), createdAt);
  }
}

function fill(database: Database, initial: InitialData): void {
  keepAuthors(database, initial.authors);
  const post = database.prepare(
    `INSERT INTO posts (id, title, content, status, created_at, author_id)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  for (const { id, title, content, status, createdAt, authorId } of initial.posts) {
    post.run(id, escapeText(title), escapeText(content), status, createdAt, authorId);
  }
  const comment = database.prepare(
    'INSERT INTO comments (id, post_id, content, created_at) VALUES (?, ?, ?, ?)',
  );
  for (const { id, postId, content, createdAt } of initial.comments) {
    comment.run(id, postId, escapeText(content), createdAt);
  }
  const todo = database.prepare('INSERT INTO todos (id, title, completed) VALUES (?, ?, ?)');
  for (const { id, title, completed } of initial.todos) {
    todo.run(id, escapeText(title), Number(completed));
  }
  const article = database.prepare('INSERT INTO articles (id, document) VALUES (?, ?)');
  for (const each of initial.articles) article.run(each.id, JSON.stringify(each));
}
