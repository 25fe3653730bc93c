/** Login, its limits, and the profile (Spec §4.3, §5; R5, R20 to R23, R34). */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTokens } from '../../dist/auth/jwt.js';
import { hashPassword } from '../../dist/auth/password.js';
import { ConfigError } from '../../dist/config.js';
import { pluck } from '../support/lists.ts';
import { askLogin, askProfile, logIn } from '../support/login.ts';
import { startServer } from '../support/server.ts';
import { distUrl, runInHeap } from '../support/small-heap.ts';
import { createDirectory } from '../support/uploads.ts';

const secret = 'a secret of thirty-two bytes, or more';

/** Status, and what a problem says to programs. */
async function problemOf(response: Response) {
  assert.equal(response.headers.get('content-type'), 'application/problem+json');
  const body = (await response.json()) as { status: number; code: string; errors?: unknown };
  assert.equal(body.status, response.status);
  return body;
}

test('a login gives a token, and the token gives the profile', async (t) => {
  const server = await startServer(t);
  const response = await askLogin(server, 'admin', 'password');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  const body = (await response.json()) as Record<string, string>;
  assert.deepEqual(Object.keys(body), ['access_token']);

  for (const scheme of ['Bearer', 'bearer', 'bEaReR  ']) {
    const found = await askProfile(server, `${scheme} ${body['access_token']}`);
    assert.equal(found.status, 200, scheme);
    assert.equal(found.headers.get('cache-control'), 'no-store', scheme);
    const account = (await found.json()) as Record<string, unknown>;
    assert.deepEqual(Object.keys(account), ['username', 'email', 'id', 'roles'], scheme);
    assert.equal(account['username'], 'admin', scheme);
    assert.deepEqual(account['roles'], ['USER', 'ADMIN'], scheme);
  }
});

test('an unknown user and a wrong password get the same response', async (t) => {
  const server = await startServer(t);
  const wrong = await askLogin(server, 'user', 'guess');
  const unknown = await askLogin(server, 'nobody', 'guess');
  assert.equal(wrong.status, 401);
  assert.equal(wrong.headers.get('www-authenticate'), 'Bearer realm="inkwell"');
  assert.equal(unknown.status, 401);
  assert.equal(unknown.headers.get('www-authenticate'), wrong.headers.get('www-authenticate'));
  const text = await wrong.text();
  assert.equal(await unknown.text(), text);
  assert.match(text, /"code":"invalid_credentials"/);
  // Members of every object are no users.
  for (const name of ['__proto__', 'constructor', 'toString']) {
    assert.equal((await askLogin(server, name, 'password')).status, 401, name);
  }
});

test('a login body without two strings is refused with a pointer to each fault', async (t) => {
  const server = await startServer(t);
  const rows: readonly (readonly [unknown, readonly string[]])[] = [
    [{}, ['/username', '/password']],
    [{ username: 'user' }, ['/password']],
    [{ username: 7, password: null }, ['/username', '/password']],
    [{ username: 'user', password: ['password'] }, ['/password']],
    [[], ['']],
    ['user', ['']],
    [null, ['']],
  ];
  for (const [body, pointers] of rows) {
    await t.test(JSON.stringify([body, pointers]), async () => {
      const response = await server.send('POST', '/auth/login', body);
      assert.equal(response.status, 422);
      const { code, errors } = await problemOf(response);
      assert.equal(code, 'invalid_body');
      assert.deepEqual(pluck(errors as { pointer: string }[], 'pointer'), pointers);
    });
  }
  // Other members are ignored.
  const body = { username: 'user', password: 'password', remember: { me: true } };
  assert.equal((await server.send('POST', '/auth/login', body)).status, 200);
});

test('the profile needs a good token: the challenge says what was wrong', async (t) => {
  const server = await startServer(t, { env: { JWT_SECRET: secret } });
  const good = await logIn(server);
  // Signed well, for an account that is there no more (R22).
  const seconds = { ttlSeconds: 60, sessionSecondsMax: 60 };
  const tokens = createTokens({
    secrets: [Buffer.from(secret)],
    ...seconds,
    now: () => new Date(),
  });
  const stranger = { username: 'gone', email: 'a@b', roles: [], passwordHash: '' };
  const ofStranger = tokens.sign(stranger);
  const missing = [undefined, 'Basic dXNlcjpwYXNzd29yZA==', good, `Bearer${good}`, `Token ${good}`];
  for (const authorization of missing) {
    const response = await askProfile(server, authorization);
    assert.equal(response.status, 401, authorization);
    assert.equal(response.headers.get('www-authenticate'), 'Bearer realm="inkwell"', authorization);
    assert.equal((await problemOf(response)).code, 'missing_token', authorization);
  }
  const texts = ['', 'x', `${good}x`, `${good}=`, `${good} ${good}`, `${good}, Bearer ${good}`];
  texts.push(`${good},`, `"${good}"`, `token=${good}`, 'a'.repeat(15_000), ofStranger);
  const invalid = ['Bearer', ...texts.map((text) => `Bearer ${text}`)];
  for (const authorization of invalid) {
    const response = await askProfile(server, authorization);
    assert.equal(response.status, 401, authorization);
    const challenge = response.headers.get('www-authenticate');
    assert.equal(challenge, 'Bearer realm="inkwell", error="invalid_token"', authorization);
    assert.equal((await problemOf(response)).code, 'invalid_token', authorization);
  }
});

test('a token is signed with the secret of the setting, and lives as long as it says', async (t) => {
  const env = { JWT_SECRET: secret, TOKEN_TTL_SECONDS: '5' };
  const server = await startServer(t, { env });
  const token = await logIn(server);
  const [header = '', payload = '', signature] = token.split('.');
  const expected = createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url');
  assert.equal(signature, expected);
  const { iat, exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as {
    readonly iat: number;
    readonly exp: number;
  };
  assert.equal(exp - iat, 5);
  const unsigned = Buffer.from('{"alg":"none"}').toString('base64url');
  assert.equal((await askProfile(server, `Bearer ${unsigned}.${payload}.`)).status, 401);
});

test('without a secret each run has its own, and says so once', async (t) => {
  const one = await startServer(t);
  const other = await startServer(t);
  const token = await logIn(one);
  assert.equal((await askProfile(one, `Bearer ${token}`)).status, 200);
  assert.equal((await askProfile(other, `Bearer ${token}`)).status, 401);
  const notices = one.logged.filter((record) => JSON.stringify(record).includes('JWT_SECRET'));
  assert.equal(notices.length, 1);
});

test('a file of accounts replaces the demo accounts; in production there are none', async (t) => {
  const usersFile = join(await createDirectory(t), 'users.json');
  const passwordHash = await hashPassword('ink');
  const ann = { username: 'ann', email: 'ann@example.com', roles: [], passwordHash };
  await writeFile(usersFile, JSON.stringify([ann]));
  const env = { USERS_FILE: usersFile };
  const production = { NODE_ENV: 'production' };
  for (const given of [env, { ...env, ...production, DEMO_DATA: 'false' }]) {
    const server = await startServer(t, { env: given });
    const profile = await askProfile(server, `Bearer ${await logIn(server, 'ann', 'ink')}`);
    assert.deepEqual(
      pluck([(await profile.json()) as typeof ann], 'email'),
      [ann.email],
      JSON.stringify(given),
    );
    assert.equal((await askLogin(server, 'user', 'password')).status, 401, JSON.stringify(given));
  }
  for (const given of [production, { DEMO_DATA: 'false' }]) {
    const bare = await startServer(t, { env: given });
    assert.equal((await askLogin(bare, 'user', 'password')).status, 401, JSON.stringify(given));
  }

  await writeFile(usersFile, '[{}]');
  const isTold = (error: unknown): boolean =>
    error instanceof ConfigError && error.message.includes('USERS_FILE');
  await assert.rejects(startServer(t, { env }), isTold);
});

test('a post without a token has no author to need; a bad token is refused, nothing stored', async (t) => {
  const server = await startServer(t);
  const body = JSON.stringify({ title: 'Hello', content: 'again' });
  const create = (authorization: string): Promise<Response> => {
    const headers = { 'content-type': 'application/json', authorization };
    return server.fetch('/posts', { method: 'POST', body, headers });
  };
  const count = async (): Promise<number> =>
    ((await (await server.fetch('/posts')).json()) as unknown[]).length;
  const before = await count();
  assert.equal((await create('Bearer x')).status, 401);
  assert.equal(await count(), before);
  assert.equal((await create(`Bearer ${await logIn(server)}`)).status, 201);
  assert.equal((await server.send('POST', '/posts', JSON.parse(body))).status, 201);
  // Another scheme counts as none.
  assert.equal((await create('Basic dXNlcjpwYXNzd29yZA==')).status, 201);
  assert.equal(await count(), before + 3);
});

test('neither a password nor a token is ever logged', async (t) => {
  const server = await startServer(t);
  const token = await logIn(server);
  await askLogin(server, 'user', 'a wrong secret word');
  await askProfile(server, `Bearer ${token}`);
  await askProfile(server, `Bearer ${token}x`);
  const log = JSON.stringify(server.logged);
  assert.doesNotMatch(log, /secret word|"password"|eyJ/);
});

test('after too many failures an account has to wait, and no other one', async (t) => {
  const clock = { milliseconds: 0, date: 1_800_000_000_000 };
  const env = { LOGIN_FAILURES_MAX: '2' };
  const server = await startServer(t, {
    env,
    now: () => new Date(clock.date),
    monotonicNow: () => clock.milliseconds,
  });
  // Failures count until a success.
  for (const [at, status] of [401, 200, 401, 200, 401, 401].entries()) {
    const password = status === 200 ? 'password' : 'guess';
    assert.equal((await askLogin(server, 'user', password)).status, status, `status ${at}`);
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

test('an account is locked for one client, which only a trusted proxy may name', async (t) => {
  const rows = [
    // Of what the client itself put in front, nothing counts.
    ['1.1.1.1, 192.0.2.1', 'guess', 401, 401],
    ['2.2.2.2, 192.0.2.1', 'guess', 401, 401],
    ['3.3.3.3, 192.0.2.1', 'password', 429, 429],
    ['192.0.2.1, 192.0.2.2', 'password', 200, 429],
  ] as const;
  const env = { LOGIN_FAILURES_MAX: '2' };
  const behind = await startServer(t, { env: { ...env, TRUSTED_PROXIES: '127.0.0.0/8, ::1' } });
  const bare = await startServer(t, { env });
  for (const [client, password, ...statuses] of rows) {
    await t.test(JSON.stringify([client, password]), async () => {
      for (const [at, server] of [behind, bare].entries()) {
        const response = await server.fetch('/auth/login', {
          method: 'POST',
          body: JSON.stringify({ username: 'user', password }),
          headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': client },
        });
        assert.equal(response.status, statuses[at], client);
      }
    });
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
      void handle({ remoteAddress: '192.0.2.1', header, decodeBody: async (_, decode) => decode(body) });
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    console.log(lengthMax);`;
  assert.ok(Number(runInHeap(48, script)) <= 1_025);
});
