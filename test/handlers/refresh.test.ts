/** `POST /auth/refresh`: tokens are refreshed until the session has ended (R42). */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import { readClaims } from '../support/tokens.ts';
import { askProfile, askRefresh, logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';

const secret = 'a secret of thirty-two bytes, or more';

/** A token that says something else, signed well. */
function forge(token: string, change: (claims: Record<string, unknown>) => void): string {
  const claims = { ...readClaims(token) };
  change(claims);
  const payload = Buffer.from(JSON.stringify(claims)).toString('base64url');
  const input = `${token.split('.')[0] ?? ''}.${payload}`;
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

const profileStatus = async (server: TestServer, token: string): Promise<number> =>
  (await askProfile(server, `Bearer ${token}`)).status;

describe('POST /auth/refresh', () => {
  it('gives tokens until the session has ended, to the second', async (t) => {
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
      const { access_token: next = '', ...more } = (await response.json()) as Record<
        string,
        string
      >;
      assert.deepEqual(more, {});
      token = next;
      const { auth_time: authTime, iat, exp } = readClaims(token);
      assert.deepEqual([authTime, iat, exp], [login, clock.seconds, clock.seconds + 60]);
      assert.equal(await profileStatus(server, token), 200, `${seconds}`);
    }
    clock.seconds = login + 150;
    const ended = await askRefresh(server, token);
    assert.equal(ended.status, 401);
    assert.match(ended.headers.get('www-authenticate') ?? '', /error="invalid_token"/);
    assert.equal(((await ended.json()) as { readonly code: string }).code, 'invalid_token');
    const metrics = await server.metrics();
    assert.match(metrics, /inkwell_refused_tokens_total\{reason="session"\} 1\n/);
    // The last token is valid until it expires; a login begins a new session.
    assert.equal(await profileStatus(server, token), 200);
    clock.seconds = login + 209;
    assert.equal(await profileStatus(server, token), 401);
    assert.equal(readClaims(await logIn(server))['auth_time'], clock.seconds);
  });

  it('needs a valid token, and no other word of a token moves its session', async (t) => {
    const server = await startServer(t, { env: { JWT_SECRET: secret } });
    const [good, others] = [await logIn(server), await logIn(server, 'admin')];
    const statusOf = async (token: string) => (await askRefresh(server, token)).status;
    assert.equal((await fetch(`${server.url}/auth/refresh`, { method: 'POST' })).status, 401);
    const old = readClaims(good)['auth_time'] as number;
    const rows: readonly (readonly [string, string, number])[] = [
      ['unchanged', forge(good, () => undefined), 200],
      ['expired', forge(good, (claims) => (claims['exp'] = old - 1)), 401],
      ['too long ago', forge(good, (claims) => (claims['auth_time'] = old - 28_801)), 401],
      ['without a login', forge(good, (claims) => delete claims['auth_time']), 401],
      ['without a credential', forge(good, (claims) => delete claims['credential']), 401],
      ['of another user', forge(good, (claims) => (claims['sub'] = 'admin')), 401],
      [
        'with the credential of another',
        forge(good, (claims) =>
          Object.assign(claims, { credential: readClaims(others)['credential'] }),
        ),
        401,
      ],
      ['signed by nobody', `${good.slice(0, -2)}AA`, 401],
      ['nonsense', 'x', 401],
    ];
    for (const [name, token, status] of rows) assert.equal(await statusOf(token), status, name);
    // What an older build signed without the time of the login is valid until it expires.
    assert.equal(await profileStatus(server, rows[3]?.[1] ?? ''), 200);
    assert.equal(await profileStatus(server, rows[4]?.[1] ?? ''), 401);
  });

  it('does not read its body, and refuses pages of other sites', async (t) => {
    const server = await startServer(t);
    const token = await logIn(server);
    for (const [at, body] of ['{}', 'x'.repeat(300_000), '{"username":"admin"}'].entries()) {
      const response = await askRefresh(server, token, { body });
      assert.equal(response.status, 200, `body ${at}`);
      const { access_token: next = '' } = (await response.json()) as Record<string, string>;
      assert.equal(readClaims(next)['sub'], 'user', `body ${at}`);
    }
    const foreign = await askRefresh(server, token, {
      headers: { Origin: 'https://evil.example' },
    });
    assert.equal(foreign.status, 403);
    assert.equal(((await foreign.json()) as { code: string }).code, 'foreign_origin');
  });
});
