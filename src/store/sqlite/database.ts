/**
 * The file of the SQLite driver: opening, pragmas, and schema migrations in numbered steps. The
 * file stores the number of steps that were run (`user_version`).
 */

import { existsSync, statSync } from 'node:fs';
import { access, constants, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { Row, Value } from '../sql/rows.ts';

/** SQLite has no booleans. */
export type SqliteValue = Exclude<Value, boolean>;

/** The part of `node:sqlite` that is used; the oldest supported Node has no types for it. */
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
  readonly isOpen: boolean;
}

type Count = number | bigint;

export interface Statement {
  run(...values: readonly SqliteValue[]): Readonly<Record<'changes' | 'lastInsertRowid', Count>>;
  get(...values: readonly SqliteValue[]): Row | undefined;
  all(...values: readonly SqliteValue[]): readonly Row[];
  iterate(...values: readonly SqliteValue[]): Iterable<Row>;
  /** Rows become arrays. Absent before Node 22.16. */
  setReturnArrays?(isEnabled: boolean): void;
}

/** Identifies files of this program by their header: "Inkw". */
const applicationId = 0x49_6e_6b_77;

/** The columns of records that are ordered by the time at which they were stored (R2). */
const ordered = 'seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE';

/**
 * Each step runs once per file, in this order. Steps are added, never changed; what only older
 * builds use is left out of new files.
 */
const steps: readonly string[] = [
  `CREATE TABLE posts (${ordered}, title TEXT NOT NULL, content TEXT NOT NULL,
    status TEXT NOT NULL, created_at TEXT NOT NULL, author_id TEXT) STRICT;
  CREATE INDEX posts_of_author ON posts (author_id, seq) WHERE author_id IS NOT NULL;
  CREATE TABLE comments (${ordered}, post_id TEXT NOT NULL REFERENCES posts (id) ON DELETE CASCADE,
    content TEXT NOT NULL, created_at TEXT NOT NULL) STRICT;
  CREATE INDEX comments_of_post ON comments (post_id, seq);
  CREATE TABLE authors (id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL,
    created_at TEXT NOT NULL) STRICT;
  CREATE TABLE todos (${ordered}, title TEXT NOT NULL, completed INTEGER NOT NULL) STRICT;
  CREATE TABLE articles (id INTEGER PRIMARY KEY, document TEXT NOT NULL) STRICT;
  CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
  INSERT INTO counters VALUES ('articles', 0);`,
  `CREATE TABLE accounts (username TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, email TEXT NOT NULL,
    roles TEXT NOT NULL, password_hash TEXT NOT NULL) STRICT;`,
  `CREATE TABLE files (seq INTEGER PRIMARY KEY AUTOINCREMENT, stored_name TEXT NOT NULL UNIQUE,
    disk_name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, change INTEGER NOT NULL) STRICT;`,
  '', // a table of older builds
  `CREATE TABLE upload_folder (one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    id TEXT NOT NULL) STRICT;`,
  'CREATE INDEX posts_of_status ON posts (status, seq);',
  `CREATE INDEX posts_of_author_status ON posts ((CAST(author_id AS text) || ' ' || status), seq)
    WHERE author_id IS NOT NULL;`,
  // Writes under keys (R40). Times are those of the database's clock, in seconds.
  `CREATE TABLE requests (seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, print TEXT NOT NULL,
    result TEXT NOT NULL, made INTEGER NOT NULL DEFAULT (unixepoch())) STRICT;`,
];

/** Limit for the write-ahead log after long reads: four times its usual size. */
const logBytes = 16 * 1024 * 1024;

/** After a loss of power too: each commit waits for the disk. */
const durable = 'PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON';

const waitForOthers = 'PRAGMA busy_timeout = 2000';

/** A counter that marks a new file without its initial records. */
const unfilled = 'unfilled';

/** Opens or creates the file; a new file can be accessed only by this user. */
export async function openDatabase(path: string, mayCreate: boolean): Promise<Database> {
  return connect(path, async () => {
    if (mayCreate) await (await open(path, 'a', 0o600)).close();
    else await access(path);
  });
}

/** Rejects if a start could not open, or create, the file. Changes nothing. */
export async function checkSqlite(path: string): Promise<void> {
  if (existsSync(path)) (await openToRead(path)).close();
  else (await connect(':memory:', () => access(dirname(path), constants.W_OK))).close();
}

/** Opens an existing file of this program. Changes nothing in it. */
export async function openToRead(path: string): Promise<Database> {
  const database = await connect(path, () => access(path));
  try {
    database.exec(waitForOthers);
    checkOrigin(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A further connection to the file of a running server. */
export async function openConnection(path: string): Promise<Database> {
  const database = await connect(path, () => access(path));
  // The checkpoint of a long log is left to the next write.
  database.exec(`${durable}; PRAGMA wal_autocheckpoint = 0; PRAGMA busy_timeout = 10`);
  return database;
}

async function connect(path: string, prepare: () => Promise<void>): Promise<Database> {
  const { DatabaseSync } = await importSqlite();
  try {
    await prepare();
    return new DatabaseSync(path);
  } catch (error) {
    const { code = 'unknown fault' } = error as { code?: string };
    throw new Error(`STORE_URL: the file ${path} cannot be opened (${code}).`, { cause: error });
  }
}

async function importSqlite(): Promise<{ DatabaseSync: new (path: string) => Database }> {
  const name: string = 'node:sqlite';
  try {
    return (await import(name)) as Awaited<ReturnType<typeof importSqlite>>;
  } catch (error) {
    throw new Error('STORE_URL: sqlite:// needs Node 22.13 or newer.', { cause: error });
  }
}

/**
 * Migrates the file to the newest step. `fill` adds the initial records to a file that never had
 * them, in the same transaction. A file of a newer version or of another program is refused before
 * anything changes.
 */
export function prepareDatabase(database: Database, log: Log, fill?: () => void): void {
  database.exec(waitForOthers);
  checkOrigin(database);
  database.exec('PRAGMA journal_mode = WAL');
  database.exec(durable);
  // The log grows during long reads. It is truncated to this size when it restarts.
  database.exec(`PRAGMA journal_size_limit = ${logBytes}`);
  database.exec('BEGIN IMMEDIATE');
  try {
    // Read in the transaction, because another process may have migrated the file in the meantime.
    const version = checkOrigin(database);
    for (const step of steps.slice(version)) database.exec(step);
    if (version === 0) database.exec(`INSERT INTO counters VALUES ('${unfilled}', 1)`);
    const take = `DELETE FROM counters WHERE name = '${unfilled}' RETURNING 1`;
    if (fill !== undefined && database.prepare(take).get() !== undefined) fill();
    // A start on a full disk must not fail here.
    if (version < steps.length) {
      database.exec(`PRAGMA application_id = ${applicationId}`);
      database.exec(`PRAGMA user_version = ${steps.length}`);
    }
    database.exec('COMMIT');
    const to = steps.length;
    if (version > 0 && version < to) log('info', 'schema migrated', { from: version, to });
  } catch (error) {
    rollBack(database);
    if (!isKind(error, sqliteFull)) throw error;
    throw new Error('STORE_URL: the disk of the file is full.', { cause: error });
  }
}

/** Counts the starts, so that other processes notice that another one writes to the file. */
export function announce(database: Database): void {
  try {
    database.exec(`INSERT INTO counters VALUES ('starts', 1)
      ON CONFLICT (name) DO UPDATE SET value = value + 1`);
  } catch (error) {
    if (!isKind(error, sqliteFull)) throw error; // such a process cannot write
  }
}

/** Ends a transaction, if there is one: after some errors SQLite has already rolled back. */
export function rollBack(database: Database): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    // Nothing to roll back.
  }
}

export const sqliteBusy = 5;
export const sqliteFull = 13;
export const sqliteForeignKey = 787;

export function isSqliteError(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error;
}

export function isKind(error: unknown, kind: number): boolean {
  // The low byte is the primary result code.
  return isSqliteError(error) && error.errcode % 256 === kind;
}

/**
 * Returns a function that throws, and logs once, if another file, or none, has the path of the open
 * one: what is written then is lost at the end of the process.
 */
export function createFileCheck(path: string, log: Log): () => void {
  const opened = statSync(path);
  let isLogged = false;
  return () => {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.ino === opened.ino && found.dev === opened.dev) return;
    const fate = found === undefined ? 'deleted' : 'replaced';
    if (!isLogged) log('error', `the file of the store was ${fate}`, { path });
    isLogged = true;
    const message = `The file of the store was ${fate}.`;
    throw new AppError('unavailable', message, { retryAfterSeconds: 2 });
  };
}

const sqliteReadOnly = 8;
const sqliteCannotOpen = 14;

/** Returns the number of steps that were run. Throws if the file is not one of this program. */
function checkOrigin(database: Database): number {
  const text = `SELECT count(*) AS tables,
    (SELECT user_version FROM pragma_user_version) AS version,
    (SELECT application_id FROM pragma_application_id) AS application FROM sqlite_master`;
  let found: Row | undefined;
  try {
    found = database.prepare(text).get();
  } catch (error) {
    const { errcode = 0 } = error as { errcode?: number };
    // SQLite creates its other files (-wal, -shm) in the same folder.
    const reason = [sqliteReadOnly, sqliteCannotOpen].includes(errcode % 256)
      ? 'the file, or its folder, cannot be written to'
      : 'the file is not an SQLite database';
    throw new Error(`STORE_URL: ${reason}.`, { cause: error });
  }
  const version = Number(found?.['version']);
  if (Number(found?.['tables']) > 0 && found?.['application'] !== applicationId) {
    throw new Error('STORE_URL: the file belongs to another program.');
  }
  if (version > steps.length) {
    throw new Error('STORE_URL: the file was written by a newer version of this program.');
  }
  return version;
}
