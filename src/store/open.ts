/** Opens the store that STORE_URL names. A driver is loaded only if it is chosen. */

import type {
  AccountsOptions,
  CheckOptions,
  DriverOptions,
  OpenedAccounts,
  Store,
} from './store.ts';
import { createMemoryStore } from './memory.ts';

/** How long to wait for the database at the start: both may be started at the same time. */
export const startSeconds = 30;

/**
 * `memory:` or empty: in memory. `sqlite:///path`: in that file. `postgres://…`: in that database.
 * Throws an Error with a message of one line that names STORE_URL.
 */
export async function openStore(url: string, options: DriverOptions): Promise<Store> {
  if (url === '' || url === 'memory:') return createMemoryStore(options);
  if (url.startsWith('sqlite:///')) {
    const { openSqliteStore } = await import('./sqlite/open.ts');
    return openSqliteStore(toPath(url), options);
  }
  const { openPostgresStore } = await import('./postgres/open.ts');
  return openPostgresStore(url, { ...options, startSeconds });
}

/**
 * Opens only the accounts of a store; does not add the initial records.
 * Throws an Error with a message of one line that names STORE_URL if the store has no accounts or
 * cannot be reached.
 */
export async function openAccounts(url: string, options: AccountsOptions): Promise<OpenedAccounts> {
  if (url === '' || url === 'memory:') throw new Error(notKept);
  if (url.startsWith('sqlite:///')) {
    const { openSqliteAccounts } = await import('./sqlite/open.ts');
    return openSqliteAccounts(toPath(url), options);
  }
  const { openPostgresAccounts } = await import('./postgres/open.ts');
  return openPostgresAccounts(url, options);
}

/** Rejects with a message of one line if a start could not open the store. Changes nothing. */
export async function checkStore(url: string, options: CheckOptions): Promise<void> {
  if (url === '' || url === 'memory:') return;
  if (url.startsWith('sqlite:///')) {
    const { checkSqlite } = await import('./sqlite/open.ts');
    return checkSqlite(toPath(url));
  }
  const { checkPostgres } = await import('./postgres/open.ts');
  return checkPostgres(url, options);
}

/**
 * Copies the store, as it is at one moment, to a new file while servers use it. Throws an Error
 * with a message of one line.
 */
export async function backUpStore(url: string, file: string): Promise<void> {
  if (url === '' || url === 'memory:') throw new Error(notKept);
  if (!url.startsWith('sqlite:///')) {
    throw new Error('STORE_URL: pg_dump makes the backup of a PostgreSQL database.');
  }
  const { backUpSqlite } = await import('./sqlite/open.ts');
  await backUpSqlite(toPath(url), file);
}

const notKept = 'STORE_URL: a store in memory is not permanent.';

/** `sqlite:///var/lib/inkwell.db` → `/var/lib/inkwell.db`; percent-escapes are decoded. */
function toPath(url: string): string {
  try {
    return decodeURIComponent(url.slice('sqlite://'.length));
  } catch {
    throw new Error('STORE_URL: the path holds a % that encodes nothing.');
  }
}
