/** The rules of a login, with a checker that needs no scrypt (Spec §5, R21). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTokens } from '../../dist/auth/jwt.js';
import { createLoginLimiter } from '../../dist/auth/login-limiter.js';
import { createLogin } from '../../dist/auth/login.js';
import { AppError } from '../../dist/errors.js';

const account = {
  id: '018f3173-7000-7a10-8c01-6f5d2e9b4a01',
  username: 'ann',
  email: 'ann@example.com',
  roles: ['USER'],
  passwordHash: 'hash of secret',
};

function createFixture() {
  const now = () => new Date(1_700_000_000_000);
  const tokens = createTokens({ secrets: [Buffer.alloc(32, 3)], ttlSeconds: 60, now });
  const checked: (string | undefined)[] = [];
  const login = createLogin({
    security: () => undefined,
    store: {
      accounts: { findForLogin: (name) => (name === account.username ? account : undefined) },
    },
    limiter: createLoginLimiter({ failuresMax: 2, now: () => 0 }),
    checkPassword: (password, hash) => {
      checked.push(hash);
      return Promise.resolve(hash === `hash of ${password}`);
    },
    tokens,
  });
  const attempt = (username: string, password: string) =>
    login({ username, password, address: '192.0.2.1' });
  return { tokens, checked, attempt };
}

const refusal = async (attempt: Promise<string>): Promise<AppError> => {
  const error: unknown = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof AppError);
  return error;
};

test('the right password gives a token of the account', async () => {
  const { tokens, attempt } = createFixture();
  const claims = tokens.verify(await attempt('ann', 'secret'));
  assert.equal(claims?.sub, 'ann');
  assert.equal(claims?.email, 'ann@example.com');
  assert.deepEqual(claims?.roles, ['USER']);
});

test('an unknown user and a wrong password are refused alike, after a check of both', async () => {
  const { checked, attempt } = createFixture();
  const wrong = await refusal(attempt('ann', 'guess'));
  const unknown = await refusal(attempt('nobody', 'guess'));
  assert.deepEqual(checked, ['hash of secret', undefined]);
  assert.equal(wrong.code, 'invalid_credentials');
  assert.deepEqual(
    [wrong.code, wrong.message, wrong.facts],
    [unknown.code, unknown.message, unknown.facts],
  );
  assert.doesNotMatch(wrong.message, /ann|guess/);
});

test('names that are members of every object are unknown users', async () => {
  const { attempt } = createFixture();
  for (const name of ['__proto__', 'constructor', 'toString']) {
    assert.equal((await refusal(attempt(name, 'secret'))).code, 'invalid_credentials');
  }
});

test('after too many failures even the right password is refused, unchecked', async () => {
  const { checked, attempt } = createFixture();
  await refusal(attempt('ann', 'guess'));
  await refusal(attempt('ann', 'guess'));
  const error = await refusal(attempt('ann', 'secret'));
  assert.equal(error.code, 'too_many_requests');
  assert.equal(error.facts.retryAfterSeconds, 60);
  assert.equal(checked.length, 2);
});

test('a success in between starts the count anew', async () => {
  const { attempt } = createFixture();
  for (let round = 0; round < 4; round += 1) {
    await refusal(attempt('ann', 'guess'));
    assert.ok(await attempt('ann', 'secret'));
  }
});
