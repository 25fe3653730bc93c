/** What a driver is opened with, whole or for its accounts alone. */

import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { MemoryStoreOptions } from './memory.ts';
import type { KeptAccounts, Store } from './store.ts';

/** `initial` is what the store holds when it is new; a durable one gets it once. */
export interface DriverOptions extends MemoryStoreOptions {
  readonly log: Log;
  /** Where a database server tells of comments; empty: where the records are. */
  readonly listenUrl: string;
  /** Connections to a database server. */
  readonly connectionsMax: number;
  /** How long one statement may take. */
  readonly timeoutSeconds: number;
}

export interface AccountsOptions {
  /** How long a database server that does not answer is waited for. */
  readonly startSeconds: number;
  readonly log: Log;
  /** The local date-time of now, as records keep it. */
  readonly now: () => string;
  /** How long one statement on a database server may take. */
  readonly timeoutSeconds: number;
}

export interface OpenedAccounts {
  readonly accounts: KeptAccounts;
  readonly openFileIndex: NonNullable<Store['openFileIndex']>;
  close(): MaybePromise<void>;
}
