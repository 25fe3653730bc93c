/** What a login does that its response must not show (Spec §5, R21). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTokens } from '../../dist/auth/jwt.js';
import { createLogin, createLoginLimiter } from '../../dist/auth/login.js';

const account = { id: '', username: 'ann', email: '', roles: [], passwordHash: 'hash' };

test('an unknown user and a wrong password cost the same check, a locked one costs none', async () => {
  const checked: (string | undefined)[] = [];
  const login = createLogin({
    security: () => undefined,
    accounts: { findForLogin: (name) => (name === 'ann' ? account : undefined) },
    limiter: createLoginLimiter(1, () => 0),
    checkPassword: (_password, hash) => {
      checked.push(hash);
      return Promise.resolve(false);
    },
    tokens: createTokens({ secrets: [Buffer.alloc(32)], ttlSeconds: 60, now: () => new Date() }),
  });
  const attempt = (username: string) => login({ username, password: '', address: '192.0.2.1' });
  for (const name of ['ann', 'nobody']) {
    await assert.rejects(attempt(name), { code: 'invalid_credentials' });
  }
  for (const name of ['ann', 'nobody']) {
    await assert.rejects(attempt(name), { code: 'too_many_requests' });
  }
  assert.deepEqual(checked, ['hash', undefined]);
});
