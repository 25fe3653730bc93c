/** Tokens that were verified are kept: for how much memory (R22). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { account, createOwn } from '../support/tokens.ts';

test('verified tokens are remembered within 4 MiB', () => {
  const tokens = createOwn();
  // Of 3,914 characters, each of which counts as three bytes, with 1,280 bytes beside them.
  const tokenOf = (index: number): string =>
    tokens.sign({ ...account, username: String(index).padStart(2_700, '0') });
  assert.equal(tokenOf(0).length, 3_914);
  const first = tokens.verify(tokenOf(0));
  for (let index = 1; index < 300; index += 1) tokens.verify(tokenOf(index));
  assert.equal(tokens.verify(tokenOf(0)), first);
  for (let index = 300; index < 340; index += 1) tokens.verify(tokenOf(index));
  assert.notEqual(tokens.verify(tokenOf(0)), first);
});
