/** The account behind an Authorization header, and every header that has none (R22, R23). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBearer } from '../../dist/auth/bearer.js';
import { createTokens } from '../../dist/auth/jwt.js';
import { AppError } from '../../dist/errors.js';

const account = {
  id: '018f3173-7000-7a10-8c01-6f5d2e9b4a01',
  username: 'ann',
  email: 'ann@example.com',
  roles: ['USER'],
  passwordHash: '',
};
const now = () => new Date(1_700_000_000_000);
const tokens = createTokens({ secrets: [Buffer.alloc(32, 3)], ttlSeconds: 60, now });
const good = tokens.sign(account);
const ofStranger = tokens.sign({ ...account, username: 'gone' });
const find = (name: string) => (name === account.username ? account : undefined);
const bearer = createBearer({ tokens, store: { accounts: { find } } });

const requestWith = (authorization: string | undefined) => ({
  header: (name: string) => (name === 'authorization' ? authorization : undefined),
});

/** The code of the refusal. */
function refusalOf(act: () => unknown): string {
  let refusal: unknown;
  try {
    act();
  } catch (error) {
    refusal = error;
  }
  assert.ok(refusal instanceof AppError, 'was not refused');
  assert.doesNotMatch(refusal.message, /eyJ/);
  return refusal.code;
}

test('a good token gives its account, at once, with the scheme in any case', () => {
  for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'bEaReR   ']) {
    const request = requestWith(scheme + good);
    assert.equal(bearer.authenticate(request), account);
    assert.equal(bearer.authenticateIfSent(request), account);
  }
});

test('without a header nobody is asked for, or a token is missing', () => {
  const request = requestWith(undefined);
  assert.equal(bearer.authenticateIfSent(request), undefined);
  assert.equal(
    refusalOf(() => bearer.authenticate(request)),
    'missing_token',
  );
});

test('a header of another scheme holds no token: refused without an error attribute', () => {
  for (const value of ['', 'Basic dXNlcjpwYXNzd29yZA==', `Bearer${good}`, good, `Token ${good}`]) {
    const request = requestWith(value);
    assert.equal(
      refusalOf(() => bearer.authenticate(request)),
      'missing_token',
    );
    assert.equal(
      refusalOf(() => bearer.authenticateIfSent(request)),
      'missing_token',
    );
  }
});

test('a bad token, or the token of an account that is gone, is refused as invalid', () => {
  const values = [
    'Bearer',
    'Bearer ',
    'Bearer x',
    `Bearer ${good}x`,
    `Bearer ${good}=`,
    `Bearer ${good} ${good}`,
    `Bearer ${good}, Bearer ${good}`,
    `Bearer ${good},`,
    `Bearer "${good}"`,
    `Bearer \t${good}`,
    `Bearer token=${good}`,
    `Bearer ${'a'.repeat(16_000)}`,
    `Bearer ${ofStranger}`,
  ];
  for (const value of values) {
    const request = requestWith(value);
    assert.equal(
      refusalOf(() => bearer.authenticate(request)),
      'invalid_token',
      value,
    );
    assert.equal(
      refusalOf(() => bearer.authenticateIfSent(request)),
      'invalid_token',
    );
  }
});

test('with a store that answers later the account comes later', async () => {
  const later = createBearer({
    tokens,
    store: { accounts: { find: (name) => Promise.resolve(find(name)) } },
  });
  assert.equal(await later.authenticate(requestWith(`Bearer ${good}`)), account);
  await assert.rejects(
    async () => later.authenticate(requestWith(`Bearer ${ofStranger}`)),
    (error) => error instanceof AppError && error.code === 'invalid_token',
  );
});
