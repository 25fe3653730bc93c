/** What a driver is opened with. */

import type { Log } from '../log.ts';
import type { MemoryStoreOptions } from './memory.ts';

/** `initial` is what the store holds when it is new; a durable one gets it once. */
export interface DriverOptions extends MemoryStoreOptions {
  readonly log: Log;
  /** Connections to a database server. */
  readonly connectionsMax: number;
  /** How long one statement may take. */
  readonly timeoutSeconds: number;
}
