/** Failed logins are limited for the address of the client, behind a proxy too (R21, R34). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askLogin } from '../support/login.js';
import { startServer, type TestServer } from '../support/server.js';
import { distUrl, runInHeap } from '../support/small-heap.js';

/** The status for a client whose address is told by a header alone. */
async function loginBehind(server: TestServer, client: string, password: string): Promise<number> {
  const response = await server.fetch('/auth/login', {
    method: 'POST',
    body: JSON.stringify({ username: 'user', password }),
    headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': client },
  });
  return response.status;
}

test('after too many failures an account has to wait, and no other one', async (t) => {
  const clock = { milliseconds: 0, date: 1_800_000_000_000 };
  const env = { LOGIN_FAILURES_MAX: '2' };
  const server = await startServer(t, {
    env,
    now: () => new Date(clock.date),
    monotonicNow: () => clock.milliseconds,
  });
  for (let time = 0; time < 2; time += 1) {
    assert.equal((await askLogin(server, 'user', 'guess')).status, 401);
  }
  const refused = await askLogin(server, 'user', 'password');
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get('retry-after'), '60');
  assert.equal(((await refused.json()) as { code: string }).code, 'too_many_requests');
  assert.equal((await askLogin(server, 'admin', 'password')).status, 200);
  // A clock that is set back prolongs nothing.
  clock.date -= 3_600_000;
  clock.milliseconds += 60_000;
  assert.equal((await askLogin(server, 'user', 'password')).status, 200);
});

test('behind a trusted proxy an account is locked for one client, not for all', async (t) => {
  const env = { LOGIN_FAILURES_MAX: '2', TRUSTED_PROXIES: '127.0.0.0/8, ::1' };
  const server = await startServer(t, { env });
  const from = (client: string, password: string): Promise<number> =>
    loginBehind(server, client, password);
  // Of what the client itself put in front, nothing counts.
  for (const forged of ['1.1.1.1', '2.2.2.2']) {
    assert.equal(await from(`${forged}, 192.0.2.1`, 'guess'), 401);
  }
  assert.equal(await from('3.3.3.3, 192.0.2.1', 'password'), 429);
  assert.equal(await from('192.0.2.1, 192.0.2.2', 'password'), 200);
});

test('a client that is no trusted proxy cannot say that it is another one', async (t) => {
  const server = await startServer(t, { env: { LOGIN_FAILURES_MAX: '2' } });
  for (const [client, status] of [
    ['192.0.2.1', 401],
    ['192.0.2.2', 401],
    ['192.0.2.3', 429],
  ] as const) {
    assert.equal(await loginBehind(server, client, 'guess'), status);
  }
});

test('a login that waits keeps two short texts, whatever was sent', () => {
  // Wide text: two bytes a character as soon as one of them needs it.
  const script = `
    import { createAccountHandlers } from '${distUrl('handlers/accounts.js')}';
    let lengthMax = 0;
    const login = ({ username, password }) => {
      lengthMax = Math.max(lengthMax, username.length, password.length);
      return new Promise(() => {});
    };
    const config = { bodyBytesMax: 1024 * 1024, trustedProxies: [] };
    const { login: handle } = createAccountHandlers({ login, config });
    for (let count = 0; count < 60; count += 1) {
      const username = count + "€" + "x".repeat(330_000);
      const body = Buffer.from(JSON.stringify({ username, password: username, more: username }));
      const header = (name) => (name === 'content-type' ? 'application/json' : undefined);
      void handle({ remoteAddress: '192.0.2.1', header, readBody: async () => body });
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    console.log(lengthMax);`;
  assert.ok(Number(runInHeap(48, script)) <= 1_025);
});
