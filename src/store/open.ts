/** Opens the store that STORE_URL names. A driver is loaded only if it is chosen. */

import { randomUUID } from 'node:crypto';
import type { AccountsOptions, CheckOptions, DriverOptions, Store } from './store.ts';
import { createMemoryStore } from './memory.ts';
import type { WholeDriver } from './whole-store.ts';

/** How long to wait for the database at the start: both may be started at the same time. */
export const startSeconds = 30;

/**
 * `memory:` or empty: in memory. `sqlite:///path`: in that file. `postgres://…`: in that database.
 * Throws an Error with a message of one line that names STORE_URL.
 */
export async function openStore(url: string, options: DriverOptions): Promise<Store> {
  if (isInMemory(url)) return createMemoryStore(options);
  return (await load(url)).openStore(url, { ...options, startSeconds, mayCreate: true });
}

/**
 * Opens only the accounts of a store; does not add the initial records.
 * Throws an Error with a message of one line that names STORE_URL if the store has no accounts or
 * cannot be reached.
 */
export async function openAccounts(url: string, options: AccountsOptions) {
  const driver = await load(url);
  const store = await driver.openStore(url, {
    ...options,
    initial: undefined,
    createId: randomUUID,
    listenUrl: '',
    connectionsMax: 1,
    run: (work) => work(),
  });
  return { accounts: store.storedAccounts, close: () => store.close() };
}

/**
 * Does what a start, the first read, the first write and the first subscription do, and changes
 * nothing: rejects with a message of one line if one of them fails. Resolves with the number of
 * stored accounts.
 */
export async function checkStore(url: string, options: CheckOptions): Promise<number> {
  if (isInMemory(url)) return 0;
  const driver = await load(url);
  return driver.checkStore(url, options);
}

/**
 * Copies the store, as it is at one moment, to a new file while servers use it. Throws an Error
 * with a message of one line.
 */
export async function backUpStore(url: string, file: string): Promise<void> {
  await (await load(url)).backUpStore(url, file);
}

/** Reads a whole store at one moment. Throws an Error with a message of one line. */
export const readStore: WholeDriver['readStore'] = async (url, options, work) =>
  (await load(url)).readStore(url, options, work);

/** Adds to a store, which is created if it is not there: all or nothing. Throws as `readStore`. */
export const fillStore: WholeDriver['fillStore'] = async (url, options, work) =>
  (await load(url)).fillStore(url, options, work);

export function isInMemory(url: string): boolean {
  return url === '' || url === 'memory:';
}

/** Loads the driver of a database. */
async function load(url: string) {
  if (isInMemory(url)) {
    const next = 'give this command the STORE_URL of the server, for example by --env-file';
    throw new Error(`STORE_URL: a store in memory is not permanent; ${next}.`);
  }
  return url.startsWith('sqlite:///') ? import('./sqlite/open.ts') : import('./postgres/open.ts');
}
