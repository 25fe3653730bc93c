/** A token expires at its second, also one that was verified before and is remembered. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTokens } from '../../dist/auth/jwt.js';

test('a token is valid until its last moment, and not a moment longer', () => {
  let seconds = 1_800_000_000;
  const now = (): Date => new Date(seconds * 1000);
  const tokens = createTokens({ secrets: [Buffer.alloc(32, 1)], ttlSeconds: 60, now });
  const account = { username: 'a', email: 'a@example.org', roles: [] };
  const [remembered, other] = [tokens.sign(account), tokens.sign({ ...account, username: 'b' })];
  assert.equal(typeof tokens.verify(remembered), 'object');
  seconds += 59.999;
  assert.equal(typeof tokens.verify(remembered), 'object');
  seconds = 1_800_000_060;
  assert.deepEqual([remembered, other].map(tokens.verify), ['expired', 'expired']);
});
