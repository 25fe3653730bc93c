/** A token expires at its second, also one that was verified before and is remembered (R22). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { account, createOwn, secret, startSeconds } from '../support/tokens.ts';

test('a token is valid until its last moment, and not a moment longer', () => {
  const clock = { seconds: startSeconds };
  const tokens = createOwn([secret], clock);
  const [remembered, other] = [tokens.sign(account), tokens.sign({ ...account, username: 'b' })];
  assert.equal(typeof tokens.verify(remembered), 'object');
  clock.seconds = startSeconds + 59.999;
  assert.equal(typeof tokens.verify(remembered), 'object');
  clock.seconds = startSeconds + 60;
  assert.deepEqual([remembered, other].map(tokens.verify), ['expired', 'expired']);
});
