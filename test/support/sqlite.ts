/** SQLite in tests: whether this Node has it, and files of their own. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Ending } from './server.ts';

interface SqliteModule {
  readonly DatabaseSync: new (path: string) => SqliteDatabase;
}

interface SqliteDatabase {
  exec(sql: string): void;
  prepare(sql: string): { all(): readonly Readonly<Record<string, unknown>>[] };
  close(): void;
}

const name: string = 'node:sqlite';
const sqlite = await import(name).then(
  (module: unknown) => module as SqliteModule,
  () => undefined,
);

/** Why tests on SQLite cannot run here, or false. */
export const skipSqlite: string | false = sqlite === undefined && 'this Node has no node:sqlite';

/** The path of a file that is not there yet, in a folder that goes with the test. */
export async function newSqliteFile(context: Ending): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-sqlite-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'in k%.db');
}

/** As STORE_URL names it. */
export function toSqliteUrl(path: string): string {
  return `sqlite://${encodeURI(path)}`;
}

/** Past every driver. The caller closes it. */
export function openInSqlite(path: string): SqliteDatabase {
  if (sqlite === undefined) throw new Error('This test should have been skipped.');
  return new sqlite.DatabaseSync(path);
}

/** The same, for as long as `work` takes. */
export function inSqlite<T>(path: string, work: (database: SqliteDatabase) => T): T {
  const database = openInSqlite(path);
  try {
    return work(database);
  } finally {
    database.close();
  }
}
