/** What a driver of the store is given in tests. */

import { createIdSource } from '../../dist/domain/ids.js';
import { createScheduler } from '../../dist/scheduler.js';
import type { DriverOptions } from '../../dist/store/store.js';
import { initialData } from '../../dist/store/seed.js';

/** The one account of `driverOptions`. */
export const ann = {
  id: '019b8d5e-9c00-7000-8000-000000000401',
  username: 'ann',
  email: 'ann@example.org',
  roles: ['USER'],
  passwordHash: 'scrypt$1$1$1$a$b',
};

export function driverOptions(more: Partial<DriverOptions> = {}): DriverOptions {
  return {
    createId: createIdSource(() => new Date()),
    now: () => '2026-02-03T04:05:06.7',
    initial: initialData([ann], true),
    log: () => undefined,
    bytesMax: Number.MAX_SAFE_INTEGER,
    run: createScheduler().run,
    listenUrl: '',
    connectionsMax: 8,
    timeoutSeconds: 60,
    ...more,
  };
}
