/** The options with which a driver is opened, as a whole or for its accounts alone. */

import type { Log } from '../log.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { MemoryStoreOptions } from './memory.ts';
import type { StoredAccounts } from './store.ts';

/** `initial` is the content of a new store; a durable store gets it only once. */
export interface DriverOptions extends MemoryStoreOptions {
  readonly log: Log;
  /** The database server for notifications of comments; empty: the one with the records. */
  readonly listenUrl: string;
  /** The maximum number of connections to a database server. */
  readonly connectionsMax: number;
  /** Time limit for one statement on a database server. */
  readonly timeoutSeconds: number;
  /** Called with the duration of each statement that reads, and each transaction that writes. */
  readonly timed?: TimeStatement | undefined;
}

export type TimeStatement = (kind: 'read' | 'write', milliseconds: number) => void;

export interface CheckOptions extends Pick<DriverOptions, 'log' | 'timeoutSeconds'> {
  /** How long to wait for a database server that does not answer. */
  readonly startSeconds: number;
}

export interface AccountsOptions extends CheckOptions, Pick<DriverOptions, 'now'> {
  /** False: a SQLite file that does not exist is an error. */
  readonly mayCreate: boolean;
}

export interface OpenedAccounts {
  readonly accounts: StoredAccounts;
  close(): MaybePromise<void>;
}
