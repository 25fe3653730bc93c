/** How much memory, and which queue, the parts of the service are given. */

import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { syncMocks } from './support/builtins.ts';
import { times } from './support/lists.ts';
import { startServer } from './support/server.ts';
import { until } from './support/until.ts';

/** Password checks begin, and end when the test lets them. */
function holdChecks(t: TestContext): (() => void)[] {
  const held: (() => void)[] = [];
  const { scrypt } = crypto;
  t.mock.method(crypto, 'scrypt', (...args: Parameters<typeof scrypt>) => {
    held.push(() => scrypt(...args));
  });
  syncMocks(t);
  return held;
}

test('sixteen logins wait for the two that are checked, more are refused', async (t) => {
  const server = await startServer(t);
  const held = holdChecks(t);
  const statuses: number[] = [];
  const login = async (): Promise<void> => {
    const account = { username: 'user', password: 'password' };
    statuses.push((await server.send('POST', '/auth/login', account)).status);
  };
  const logins = times(40).map(login);
  await until('refusals', () => statuses.length >= 22);
  assert.equal(held.length, 2);
  for (let checked = 0; checked < 18; checked += 1) {
    await until(`check ${checked}`, () => held.length > 0);
    held.shift()?.();
  }
  await Promise.all(logins);
  assert.deepEqual(statuses, [...times(22).map(() => 503), ...times(18).map(() => 200)]);
});
