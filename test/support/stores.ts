/** Stores for tests: where records can be kept, and how such a place is opened. */

import type { DriverOptions } from '../../dist/store/store.js';
import { openStore } from '../../dist/store/open.js';
import { driverOptions } from './driver-options.ts';
import { skipPostgres } from './postgres.ts';
import { database } from './shared-postgres.ts';
import { newSqliteFile, skipSqlite, toSqliteUrl } from './sqlite.ts';

interface Context {
  after(end: () => Promise<void>): unknown;
}

export interface StorePlace {
  readonly name: string;
  /** Why its tests cannot run here, or false. */
  readonly skip: string | false;
  /** STORE_URL of a place without records, gone with the test or the tests of the file. */
  newUrl(context: Context): Promise<string>;
}

export const inMemory: StorePlace = {
  name: 'in memory',
  skip: false,
  newUrl: () => Promise.resolve('memory:'),
};
export const inSqliteFile: StorePlace = {
  name: 'in a SQLite file',
  skip: skipSqlite,
  newUrl: async (context) => toSqliteUrl(await newSqliteFile(context)),
};
export const onPostgres: StorePlace = {
  name: 'on PostgreSQL',
  skip: skipPostgres,
  newUrl: () => database.clearedDatabase(),
};
export const durableStores: readonly StorePlace[] = [inSqliteFile, onPostgres];
/** One that keeps what it has, where only one is worth its time. */
export const anyDurable = durableStores.find(({ skip }) => skip === false) ?? inSqliteFile;
export const stores: readonly StorePlace[] = [inMemory, ...durableStores];

/** Closed with the test. */
export async function openOn(context: Context, url: string, more: Partial<DriverOptions> = {}) {
  const store = await openStore(url, driverOptions(more));
  context.after(async () => store.close());
  return store;
}
