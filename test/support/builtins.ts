/** Functions of Node that the program imports by their names. */

import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';

/** Call it after `t.mock.method` on such a module: the program's imports follow, until the test ends. */
export function syncMocks(t: TestContext): void {
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}
