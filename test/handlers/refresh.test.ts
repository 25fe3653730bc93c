/** `POST /auth/refresh`: tokens are refreshed until the session has ended (R42). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sign, readClaims, toSegment } from '../support/tokens.ts';
import { askProfile, askRefresh, logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';

const secret = 'a secret of thirty-two bytes, or more';

/** A token that says something else, signed well. */
function forge(token: string, change: object): string {
  const payload = toSegment(JSON.stringify({ ...readClaims(token), ...change }));
  return sign(`${token.split('.')[0] ?? ''}.${payload}`, Buffer.from(secret));
}

const profileStatus = async (server: TestServer, token: string): Promise<number> =>
  (await askProfile(server, `Bearer ${token}`)).status;

test('a token is refreshed until the session has ended, to the second', async (t) => {
  const clock = { seconds: 1_800_000_000 };
  const server = await startServer(t, {
    env: { SESSION_SECONDS_MAX: '150', ADMIN_PORT: '0' },
    now: () => new Date(clock.seconds * 1000),
  });
  const login = clock.seconds;
  let token = await logIn(server);
  assert.equal(readClaims(token)['auth_time'], login);
  for (const seconds of [59, 110, 149]) {
    clock.seconds = login + seconds;
    const response = await askRefresh(server, token);
    assert.equal(response.status, 200, `${seconds}`);
    assert.equal(response.headers.get('cache-control'), 'no-store', `${seconds}`);
    const { access_token: next, ...more } = (await response.json()) as Record<string, string>;
    assert.deepEqual(more, {});
    token = next ?? '';
    const { auth_time: authTime, iat, exp } = readClaims(token);
    assert.deepEqual([authTime, iat, exp], [login, clock.seconds, clock.seconds + 60]);
    assert.equal(await profileStatus(server, token), 200, `${seconds}`);
  }
  clock.seconds = login + 150;
  const ended = await askRefresh(server, token);
  assert.equal(ended.status, 401);
  assert.match(ended.headers.get('www-authenticate') ?? '', /error="invalid_token"/);
  const metrics = await server.metrics();
  assert.match(metrics, /inkwell_refused_tokens_total\{reason="session"\} 1\n/);
  // The last token is valid until it expires; a login begins a new session.
  assert.equal(await profileStatus(server, token), 200);
  clock.seconds = login + 209;
  assert.equal(await profileStatus(server, token), 401);
  assert.equal(readClaims(await logIn(server))['auth_time'], clock.seconds);
});

test('a refresh needs a valid token, and no other word of a token moves its session', async (t) => {
  const server = await startServer(t, { env: { JWT_SECRET: secret } });
  const [good, others] = [await logIn(server), await logIn(server, 'admin')];
  assert.equal((await server.fetch('/auth/refresh', { method: 'POST' })).status, 401);
  const old = readClaims(good)['auth_time'] as number;
  const { credential } = readClaims(others);
  // What an older build signed without the time of the login is valid until it expires.
  const [withoutLogin, without] = [{ auth_time: undefined }, { credential: undefined }];
  for (const [name, token, status, ofProfile] of [
    ['unchanged', forge(good, {}), 200, 200],
    ['expired', forge(good, { exp: old - 1 }), 401, 401],
    ['too long ago', forge(good, { auth_time: old - 28_801 }), 401, 200],
    ['without a login', forge(good, withoutLogin), 401, 200],
    ['without a credential', forge(good, without), 401, 401],
    ['of another user', forge(good, { sub: 'admin' }), 401, 401],
    ['with the credential of another', forge(good, { credential }), 401, 401],
    ['signed by nobody', `${good.slice(0, -2)}AA`, 401, 401],
    ['nonsense', 'x', 401, 401],
  ] as const) {
    assert.equal((await askRefresh(server, token)).status, status, name);
    assert.equal(await profileStatus(server, token), ofProfile, name);
  }
  for (const [at, body] of ['{}', 'x'.repeat(300_000), '{"username":"admin"}'].entries()) {
    const response = await askRefresh(server, good, { body });
    const { access_token: next = '' } = (await response.json()) as Record<string, string>;
    assert.equal(readClaims(next)['sub'], 'user', `its body is not read: ${at}`);
  }
  const foreign = await askRefresh(server, good, { headers: { Origin: 'https://evil.example' } });
  assert.equal(foreign.status, 403);
});
