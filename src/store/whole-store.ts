/**
 * The port of the commands `export` and `import`: a whole store in one transaction. What is read is
 * of one moment; what is added is stored with the commit, or not at all.
 */

import type { FileLimits, ListedFile, DurableFileIndex } from './file-index.ts';
import type { RecordOf } from './shared.ts';
import type { StartOptions } from './store.ts';

export type { RecordOf } from './shared.ts';
export type Table = keyof RecordOf;
/** The index of files, in which a folder can find its own id. */
export type FolderIndex = Pick<DurableFileIndex, 'folderId' | 'list'>;

export interface WholeStore {
  /** All records of a table: in the order stored, accounts and authors by id. */
  pages<N extends Table>(table: N): AsyncIterable<readonly RecordOf[N][]>;
  /**
   * Adds records, in their order, of which none is there. Returns for each true, or the record that
   * has its id, or undefined if it cannot be stored: another one has its name, or its post is not
   * there.
   */
  add<N extends Table>(
    table: N,
    records: readonly RecordOf[N][],
  ): Promise<readonly (true | RecordOf[N] | undefined)[]>;
  /** The last value that the counter of articles gave (R15). */
  articleCounter(): Promise<number>;
  readonly files: FolderIndex;
}

/** What an import ends with. */
export interface Ending {
  /** The counter of articles is not behind this value. */
  readonly articleCounter: number;
  /** When authors were made for accounts that have none (R20). */
  readonly now: string;
  /** In their order. */
  readonly files: readonly Omit<ListedFile, 'place'>[];
  readonly limits: FileLimits;
}

export interface FillableStore extends WholeStore {
  /**
   * Adds files to the index, and what is made of other records. Returns the files that were there
   * meanwhile. Throws `storage_full` if there are more files than the limits allow.
   */
  end(ending: Ending): Promise<readonly Omit<ListedFile, 'place'>[]>;
}

export interface FillOptions extends StartOptions {
  /** Called with the tables made, before the transaction. */
  readonly prepare: (files: FolderIndex) => Promise<void>;
}

/** The error for tables of another version. */
export function otherVersion(): Error {
  return new Error(
    'STORE_URL: the tables are of another version: run the command "migrate" first.',
  );
}

/** How a driver gives its whole store to `work`, in a transaction that ends with it. */
export interface WholeDriver {
  /** Throws for tables of another version: they would lack what this one reads. */
  readStore<T>(
    url: string,
    options: StartOptions,
    work: (store: WholeStore) => Promise<T>,
  ): Promise<T>;
  /** A new store gets its tables, and no initial records at the first start. */
  fillStore<T>(
    url: string,
    options: FillOptions,
    work: (store: FillableStore) => Promise<T>,
  ): Promise<T>;
}
