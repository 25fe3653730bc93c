/** Tokens: of which password and session, for how long, in how much memory (R22, R42). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  account,
  claimsOf,
  createOwn,
  forge,
  goodClaims,
  goodHeader,
  passwordHash,
  readClaims,
  secret,
  startSeconds,
  toCredential,
} from '../support/tokens.ts';

test('a token is of the password hash that it was made for, by the key that signed it', () => {
  const other = Buffer.alloc(32, 9);
  const [first, rotated] = [createOwn(), createOwn([other, secret])];
  const token = first.sign(account);
  for (const tokens of [first, rotated]) {
    const claims = claimsOf(tokens.verify(token));
    // In any order, also when it was found equal before.
    for (const hash of [passwordHash, 'scrypt$1$1$1$a$c', passwordHash, '', `${passwordHash} `])
      assert.equal(claims.isOf({ passwordHash: hash }), hash === passwordHash, hash);
  }
  // A credential is worth nothing under another key, though the token is signed well.
  for (const credential of [toCredential(other, passwordHash), passwordHash, '', goodHeader]) {
    const forged = forge(goodHeader, JSON.stringify({ ...goodClaims, credential }));
    assert.equal(claimsOf(rotated.verify(forged)).isOf(account), false, credential);
  }
  const own = toCredential(secret, passwordHash);
  assert.equal(readClaims(token)['credential'], own);
  assert.equal(Buffer.from(own, 'base64url').length, 16);
  assert.equal(readClaims(rotated.sign(account))['credential'], toCredential(other, passwordHash));
});

test('a token is renewed until its session has ended, and one without a login never', () => {
  const clock = { seconds: startSeconds };
  const tokens = createOwn([secret], clock);
  const full = { id: '1', ...account };
  let claims = claimsOf(tokens.verify(tokens.sign(account)));
  for (const seconds of [50, 100, 149.999]) {
    clock.seconds = startSeconds + seconds;
    claims = claimsOf(tokens.verify(tokens.renew(claims, full) ?? ''));
    assert.equal(claims.authTime, startSeconds, `${seconds}`);
    assert.equal(claims.exp, startSeconds + Math.floor(seconds) + 60, `${seconds}`);
  }
  clock.seconds = startSeconds + 150;
  assert.equal(tokens.renew(claims, full), undefined);
  // Not either in the session that it would have if it were a login itself.
  clock.seconds = startSeconds;
  const { auth_time: _, ...without } = { ...goodClaims, exp: startSeconds + 1_000 };
  const old = claimsOf(tokens.verify(forge(goodHeader, JSON.stringify(without))));
  assert.equal(tokens.renew(old, full), undefined);
});

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
