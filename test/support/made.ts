/** The records that writes make. */

import assert from 'node:assert/strict';
import type { Repeated } from '../../dist/store/store.js';

/** Fails for a write that was done before, or made nothing. */
export function made<T extends object>(result: T | Repeated | undefined): T {
  assert.ok(result !== undefined && !('isRepeated' in result));
  return result;
}
