/**
 * The file of the SQLite driver: opening, pragmas, and migration of the schema by `steps.ts`. The
 * file stores the number of steps that were run (`user_version`).
 */

import { statSync } from 'node:fs';
import { access, open } from 'node:fs/promises';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { describeFault } from '../flush.ts';
import type { Row, Value } from '../sql/rows.ts';
import { steps } from './steps.ts';
import { otherVersion } from '../whole-store.ts';

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
    if (statSync(path).isDirectory()) throw Object.assign(new Error(path), { code: 'EISDIR' });
    return new DatabaseSync(path);
  } catch (error) {
    const fault = describeFault(error);
    throw new Error(`STORE_URL: the file ${path} cannot be opened ${fault}.`, { cause: error });
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
  try {
    database.exec(waitForOthers);
    checkOrigin(database);
    database.exec('PRAGMA journal_mode = WAL');
    database.exec(durable);
    // The log grows during long reads. It is truncated to this size when it restarts.
    database.exec(`PRAGMA journal_size_limit = ${logBytes}`);
    database.exec('BEGIN IMMEDIATE');
    // Read in the transaction, because another process may have migrated the file in the meantime.
    const version = checkOrigin(database);
    for (const step of steps.slice(version)) database.exec(step);
    if (version === 0) database.exec(`INSERT INTO counters VALUES ('${unfilled}', 1)`);
    if (fill !== undefined && takeUnfilled(database)) fill();
    // A start on a full disk must not fail here.
    if (version < steps.length) {
      database.exec(`PRAGMA application_id = ${applicationId}`);
      database.exec(`PRAGMA user_version = ${steps.length}`);
    }
    database.exec('COMMIT');
    const to = steps.length;
    if (version > 0 && version < to) {
      log('info', 'schema migrated', { from: version, to, usableFrom: to });
    }
  } catch (error) {
    rollBack(database);
    throw toStartError(error);
  }
}

/** True for a file that is new: its first records come in the same transaction. */
export function takeUnfilled(database: Database): boolean {
  const text = `DELETE FROM counters WHERE name = '${unfilled}' RETURNING 1`;
  return database.prepare(text).get() !== undefined;
}

/** Throws unless the tables are of this version: in others this one does not know all columns. */
export function requireSchema(database: Database): void {
  if (checkOrigin(database) !== steps.length) throw otherVersion();
}

/** Calls `work` in a transaction in which the file is migrated, and rolls it back. */
export function rehearseMigration<T>(database: Database, work: () => T): T {
  try {
    database.exec(waitForOthers);
    database.exec(durable);
    database.exec('BEGIN IMMEDIATE');
    for (const step of steps.slice(checkOrigin(database))) database.exec(step);
    return work();
  } catch (error) {
    throw toStartError(error);
  } finally {
    rollBack(database);
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
export const sqliteFault = 10;
export const sqliteFull = 13;
/** SQLITE_IOERR_WRITE and SQLITE_IOERR_SHMSIZE. */
export const sqliteRefused: readonly number[] = [778, 4_874];
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

/** What is wrong with the file, by the primary result code of SQLite, and what to do. */
const reasons: Readonly<Record<number, string>> = {
  [sqliteBusy]: 'another program holds the file: end it, or let it release its locks',
  6: 'another program holds a table of the file',
  // SQLite creates its other files (-wal, -shm) in the same folder.
  8: 'the file, or its folder, cannot be written to',
  10: 'the disk of the file fails, or is not a local one: see the log of the system',
  11: 'the file is damaged: restore a backup',
  [sqliteFull]: 'the disk of the file is full',
  14: 'the file, or its folder, cannot be written to',
  15: 'the locks of the file do not work: put it on a local disk',
  26: 'the file is not an SQLite database',
};

/** An error of SQLite as a sentence; any other as it is. */
function toStartError(error: unknown): unknown {
  if (!isSqliteError(error)) return error;
  const reason = reasons[error.errcode % 256] ?? `SQLite refused the file: ${error.message}`;
  return new Error(`STORE_URL: ${reason} (${error.errcode}).`, { cause: error });
}

/** Returns the number of steps that were run. Throws if the file is not one of this program. */
function checkOrigin(database: Database): number {
  // Litestream, which may open an empty file first, adds tables of its own.
  const text = `SELECT count(*) AS tables,
    (SELECT user_version FROM pragma_user_version) AS version,
    (SELECT application_id FROM pragma_application_id) AS application
    FROM sqlite_master WHERE name NOT GLOB '_litestream_*'`;
  let found: Row | undefined;
  try {
    found = database.prepare(text).get();
  } catch (error) {
    throw toStartError(error);
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
