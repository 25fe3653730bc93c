/** Login, its limits, and the profile (Spec §4.3, §5; R5, R20 to R23, R34). */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTokens } from '../../dist/auth/jwt.js';
import {
  createPasswordChecker,
  createPasswordLine,
  hashPassword,
} from '../../dist/auth/password.js';
import { ConfigError } from '../../dist/config.js';
import { pluck } from '../support/lists.ts';
import { askLogin, askProfile, logIn } from '../support/login.ts';
import { startServer } from '../support/server.ts';
import { distUrl, runInHeap } from '../support/small-heap.ts';
import { readClaims } from '../support/tokens.ts';
import { createDirectory } from '../support/uploads.ts';

const secret = 'a secret of thirty-two bytes, or more';

/** Status, code, and what is wrong where. */
async function problemOf(response: Response): Promise<readonly unknown[]> {
  assert.equal(response.headers.get('content-type'), 'application/problem+json');
  const body = (await response.json()) as { code: string; errors?: { pointer: string }[] };
  return [response.status, body.code, ...pluck(body.errors ?? [], 'pointer')];
}

test('a login gives a token, and the token gives the profile', async (t) => {
  const server = await startServer(t);
  const response = await askLogin(server, 'admin', 'password');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  const { access_token: token, ...more } = (await response.json()) as Record<string, string>;
  assert.deepEqual(more, {});
  for (const scheme of ['Bearer', 'bearer', 'bEaReR  ']) {
    const found = await askProfile(server, `${scheme} ${token}`);
    assert.equal(found.headers.get('cache-control'), 'no-store', scheme);
    const { id, email, ...account } = (await found.json()) as Record<string, unknown>;
    assert.ok(id && email, scheme);
    assert.deepEqual(account, { username: 'admin', roles: ['USER', 'ADMIN'] }, scheme);
  }
});

test('an unknown user and a wrong password get the same response', async (t) => {
  const server = await startServer(t);
  const wrong = await askLogin(server, 'user', 'guess');
  assert.equal(wrong.headers.get('www-authenticate'), 'Bearer realm="inkwell"');
  const text = await wrong.text();
  assert.match(text, /"code":"invalid_credentials"/);
  // Members of every object are no users.
  for (const name of ['nobody', '__proto__', 'constructor', 'toString']) {
    const unknown = await askLogin(server, name, 'guess');
    assert.equal(unknown.status, 401, name);
    assert.equal(unknown.headers.get('www-authenticate'), 'Bearer realm="inkwell"', name);
    assert.equal(await unknown.text(), text, name);
  }
});

test('a login body without two strings is refused with a pointer to each fault', async (t) => {
  const server = await startServer(t);
  for (const [body, ...pointers] of [
    [{}, '/username', '/password'],
    [{ username: 'user' }, '/password'],
    [{ username: 7, password: null }, '/username', '/password'],
    [{ username: 'user', password: ['password'] }, '/password'],
    [[], ''],
    ['user', ''],
  ] as const) {
    const response = await server.send('POST', '/auth/login', body);
    assert.deepEqual(await problemOf(response), [422, 'invalid_body', ...pointers]);
  }
  // Other members are ignored.
  const body = { username: 'user', password: 'password', remember: { me: true } };
  assert.equal((await server.send('POST', '/auth/login', body)).status, 200);
});

test('the profile needs a good token: the challenge says what was wrong', async (t) => {
  const server = await startServer(t, { env: { JWT_SECRET: secret } });
  const good = await logIn(server);
  // Signed well, for an account that is there no more (R22).
  const times = { ttlSeconds: 60, sessionSecondsMax: 60, now: () => new Date() };
  const tokens = createTokens({ secrets: [Buffer.from(secret)], ...times });
  const gone = tokens.sign({ username: 'gone', email: 'a@b', roles: [], passwordHash: '' });
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${good.split('.')[1]}.`;
  const bad = ['', 'x', `${good}x`, `${good}=`, `${good} ${good}`, `${good}, Bearer ${good}`];
  bad.push(`${good},`, `"${good}"`, `token=${good}`, 'a'.repeat(15_000), gone, unsigned);
  const missing = [undefined, 'Basic dXNlcjpwYXNzd29yZA==', good, `Bearer${good}`, `Token ${good}`];
  for (const [code, why, all] of [
    ['missing_token', '', missing],
    [
      'invalid_token',
      ', error="invalid_token"',
      ['Bearer', ...bad.map((text) => `Bearer ${text}`)],
    ],
  ] as const) {
    for (const authorization of all) {
      const response = await askProfile(server, authorization);
      const challenge = response.headers.get('www-authenticate');
      assert.equal(challenge, `Bearer realm="inkwell"${why}`, authorization);
      assert.deepEqual(await problemOf(response), [401, code], authorization);
    }
  }
});

test('a token is signed with the secret of the setting, and lives as long as it says', async (t) => {
  const env = { JWT_SECRET: secret, TOKEN_TTL_SECONDS: '5' };
  const token = await logIn(await startServer(t, { env }));
  const [header = '', payload = '', signature] = token.split('.');
  const expected = createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url');
  assert.equal(signature, expected);
  const { iat, exp } = readClaims(token);
  assert.equal(Number(exp) - Number(iat), 5);
});

test('without a secret each run has its own, and says so once', async (t) => {
  const [one, other] = [await startServer(t), await startServer(t)];
  const token = await logIn(one);
  assert.equal((await askProfile(one, `Bearer ${token}`)).status, 200);
  assert.equal((await askProfile(other, `Bearer ${token}`)).status, 401);
  const notices = one.logged.filter((record) => JSON.stringify(record).includes('JWT_SECRET'));
  assert.equal(notices.length, 1);
});

test('a file of accounts replaces the demo accounts; in production there are none', async (t) => {
  const USERS_FILE = join(await createDirectory(t), 'users.json');
  const passwordHash = await hashPassword('ink');
  const ann = { username: 'ann', email: 'ann@example.com', roles: [], passwordHash };
  await writeFile(USERS_FILE, JSON.stringify([ann]));
  for (const [env, hasAnn] of [
    [{ USERS_FILE }, true],
    [{ USERS_FILE, NODE_ENV: 'production', DEMO_DATA: 'false' }, true],
    [{ NODE_ENV: 'production' }, false],
    [{ DEMO_DATA: 'false' }, false],
  ] as const) {
    const server = await startServer(t, { env });
    const given = JSON.stringify(env);
    assert.equal((await askLogin(server, 'user', 'password')).status, 401, given);
    if (!hasAnn) continue;
    const profile = await askProfile(server, `Bearer ${await logIn(server, 'ann', 'ink')}`);
    assert.match(await profile.text(), /"ann@example.com"/, given);
  }
  await writeFile(USERS_FILE, '[{}]');
  const isTold = (error: unknown): boolean =>
    error instanceof ConfigError && error.message.includes('USERS_FILE');
  await assert.rejects(startServer(t, { env: { USERS_FILE } }), isTold);
});

test('a username is compared composed, and without white space around it (R21)', async (t) => {
  const USERS_FILE = join(await createDirectory(t), 'users.json');
  const username = `Zo\u00e9${'\u00e9'.repeat(253)}`;
  const account = { username, email: 'z@example.com', roles: [] };
  const passwordHash = await hashPassword('right');
  await writeFile(USERS_FILE, JSON.stringify([{ ...account, passwordHash }]));
  const server = await startServer(t, { env: { USERS_FILE, LOGIN_FAILURES_MAX: '2' } });
  const decomposed = username.normalize('NFD');
  for (const [name, password, status] of [
    [username, 'right', 200],
    [decomposed, 'right', 200],
    [`${decomposed} `, 'right', 200],
    [` \u00a0${username}\n`, 'right', 200],
    [`${username}e`, 'right', 401],
    [`${decomposed}${'\u0301'.repeat(2_000)}`, 'right', 401],
    // All forms are one account, so that none has failures of its own.
    [username, 'wrong', 401],
    [decomposed, 'wrong', 401],
    [`${username} `, 'right', 429],
  ] as const) {
    assert.equal((await askLogin(server, name, password)).status, status, JSON.stringify(name));
  }
});

test('a password is compared as sent, then composed (R21)', async () => {
  const check = createPasswordChecker(createPasswordLine(4));
  const [composed, decomposed] = ['pass\u00e9word', 'passe\u0301word'] as const;
  for (const [sent, stored, isRight] of [
    [composed, composed, true],
    [decomposed, composed, true],
    [decomposed, decomposed, true],
    [composed, decomposed, false],
  ] as const) {
    const hash = await hashPassword(stored);
    assert.equal(await check(sent, hash, { client: 'a', failures: 0 }), isRight);
  }
});

test('a post needs no token; one that is bad, or sent otherwise, is refused (R23)', async (t) => {
  const server = await startServer(t);
  const token = await logIn(server);
  const create = async (headers: Readonly<Record<string, string>>): Promise<unknown> => {
    const response = await server.send('POST', '/posts', { title: 'a', content: 'b' }, headers);
    return response.status === 201 ? 201 : (await problemOf(response))[1];
  };
  const count = async () => (await server.read<unknown[]>('/posts')).length;
  const before = await count();
  assert.equal(await create({ Authorization: 'Bearer x' }), 'invalid_token');
  const spelt = [token, `Bearer: ${token}`, `Bearer\t${token}`, `Basic dTpw, Bearer ${token}`];
  for (const Authorization of [...spelt, 'Bearer:x']) {
    assert.equal(await create({ Authorization }), 'missing_token', Authorization);
  }
  assert.equal(await count(), before);
  // Tokens of somebody else, and other schemes, count as none.
  const others = [`${token}x`, 'a.b.c', `JWT ${token}`, 'BearerX a', 'X bearer-b', 'Basic dTpw'];
  for (const Authorization of [`Bearer ${token}`, `bearer  ${token}`, ...others]) {
    assert.equal(await create({ Authorization }), 201, Authorization);
  }
  assert.equal(await create({}), 201);
});

test('neither a password nor a token is ever logged', async (t) => {
  const server = await startServer(t);
  const token = await logIn(server);
  await askLogin(server, 'user', 'a wrong secret word');
  for (const sent of [token, `${token}x`]) await askProfile(server, `Bearer ${sent}`);
  assert.doesNotMatch(JSON.stringify(server.logged), /secret word|"password"|eyJ/);
});

test('after too many failures an account has to wait, and no other one', async (t) => {
  const clock = { milliseconds: 0, date: 1_800_000_000_000 };
  const server = await startServer(t, {
    env: { LOGIN_FAILURES_MAX: '2' },
    now: () => new Date(clock.date),
    monotonicNow: () => clock.milliseconds,
  });
  // Failures count until a success.
  for (const [at, status] of [401, 200, 401, 401].entries()) {
    const password = status === 200 ? 'password' : 'guess';
    assert.equal((await askLogin(server, 'user', password)).status, status, `status ${at}`);
  }
  const refused = await askLogin(server, 'user', 'password');
  assert.equal(refused.headers.get('retry-after'), '60');
  assert.deepEqual(await problemOf(refused), [429, 'too_many_requests']);
  assert.equal((await askLogin(server, 'admin', 'password')).status, 200);
  // A clock that is set back prolongs nothing.
  clock.date -= 3_600_000;
  clock.milliseconds += 60_000;
  assert.equal((await askLogin(server, 'user', 'password')).status, 200);
});

test('an account is locked for one client, which only a trusted proxy may name', async (t) => {
  const env = { LOGIN_FAILURES_MAX: '2' };
  const behind = await startServer(t, { env: { ...env, TRUSTED_PROXIES: '127.0.0.0/8, ::1' } });
  const bare = await startServer(t, { env });
  for (const [client, password, ...statuses] of [
    // Of what the client itself put in front, nothing counts.
    ['1.1.1.1, 192.0.2.1', 'guess', 401, 401],
    ['2.2.2.2, 192.0.2.1', 'guess', 401, 401],
    ['3.3.3.3, 192.0.2.1', 'password', 429, 429],
    ['192.0.2.1, 192.0.2.2', 'password', 200, 429],
  ] as const) {
    for (const [at, server] of [behind, bare].entries()) {
      const headers = { 'X-Forwarded-For': client };
      const account = { username: 'user', password };
      const { status } = await server.send('POST', '/auth/login', account, headers);
      assert.equal(status, statuses[at], client);
    }
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
