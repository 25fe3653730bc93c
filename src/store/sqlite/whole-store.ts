/** The whole store in a SQLite file, on a connection of the command's own. */

import { Changes } from '../changes.ts';
import { createWholeStore } from '../sql/whole-store.ts';
import type { FillableStore, FillOptions, WholeStore } from '../whole-store.ts';
import {
  type Database,
  openDatabase,
  openToRead,
  prepareDatabase,
  requireSchema,
  takeUnfilled,
} from './database.ts';
import { act, createRows, createStatements } from './statements.ts';

/** With the write-ahead log, one who reads keeps nobody waiting. */
export async function readSqlite<T>(
  path: string,
  work: (store: WholeStore) => Promise<T>,
): Promise<T> {
  const database = await openToRead(path);
  try {
    requireSchema(database);
    database.exec('BEGIN');
    return await work(toWholeStore(database));
  } finally {
    database.close();
  }
}

/** Others wait with their writes until the commit; closing without one undoes all. */
export async function fillSqlite<T>(
  path: string,
  { log, prepare }: FillOptions,
  work: (store: FillableStore) => Promise<T>,
): Promise<T> {
  const database = await openDatabase(path, true);
  try {
    prepareDatabase(database, log);
    const store = toWholeStore(database);
    await prepare(store.files);
    database.exec('BEGIN IMMEDIATE');
    takeUnfilled(database);
    const done = await work(store);
    database.exec('COMMIT');
    return done;
  } finally {
    database.close();
  }
}

function toWholeStore(database: Database): FillableStore {
  const rows = createRows(database, new Changes());
  // The transaction is that of the caller.
  const transactions = { write: async <V>(work: () => V): Promise<V> => work() };
  return createWholeStore({
    ...createStatements({ rows, transactions }),
    act: (steps) => act(rows, steps),
  });
}
