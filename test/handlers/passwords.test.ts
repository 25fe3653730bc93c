/** `POST /auth/password`: an account changes its own password (R51). */

import assert from 'node:assert/strict';
import { describe, it, test, type TestContext } from 'node:test';
import { runCommandHere } from '../support/command.ts';
import { askLogin, askProfile, logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { durableStores, type StorePlace } from '../support/stores.ts';

const [old, next] = ['a jar of black ink', 'a jar of blue blots'];

interface Site {
  readonly server: TestServer;
  readonly other: TestServer;
}

/** Two nodes whose store has the account `ann`. */
async function openSite(t: TestContext, place: StorePlace, more = {}): Promise<Site> {
  const env = { STORE_URL: await place.newUrl(t), JWT_SECRET: 's'.repeat(32), ...more };
  const input = `${old}\n`;
  const args = ['accounts', 'add', 'ann', '--email', 'ann@example.org', '--role', 'USER'];
  assert.equal((await runCommandHere(args, { env, input })).code, 0);
  const start = () => startServer(t, { env, probed: false });
  return { server: await start(), other: await start() };
}

async function change(server: TestServer, token: string, body: object): Promise<Response> {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
  return server.fetch('/auth/password', { method: 'POST', headers, body: JSON.stringify(body) });
}

async function codeOf(response: Response): Promise<readonly [number, unknown]> {
  const { code } = (await response.json()) as { readonly code: unknown };
  return [response.status, code];
}

for (const place of durableStores) {
  describe(`on a store ${place.name}`, { skip: place.skip }, () => {
    it('another password ends all tokens of before, on every node', async (t) => {
      const { server, other } = await openSite(t, place);
      const tokens = [await logIn(server, 'ann', old), await logIn(other, 'ann', old)];
      const demo = await logIn(server);
      const changed = await change(server, tokens[0] ?? '', { password: old, newPassword: next });
      assert.deepEqual([changed.status, await changed.text()], [204, '']);
      assert.equal(changed.headers.get('cache-control'), 'no-store');
      // In every other place: `sessions.test.ts`.
      for (const node of [server, other]) {
        for (const token of tokens) {
          assert.equal((await askProfile(node, `Bearer ${token}`)).status, 401);
        }
        assert.equal((await askLogin(node, 'ann', old)).status, 401);
        const later = await logIn(node, 'ann', next);
        assert.equal((await askProfile(node, `Bearer ${later}`)).status, 200);
        assert.equal((await askProfile(node, `Bearer ${demo}`)).status, 200);
      }
      const line = server.logged.find(({ action }) => action === 'POST /auth/password');
      assert.deepEqual(
        [line?.event, line?.['account'], line?.['client'], line?.['requestId']],
        ['change', 'ann', '127.0.0.1', changed.headers.get('x-request-id')],
      );
      assert.doesNotMatch(JSON.stringify(server.logged), /a jar of/);
    });

    it('a wrong password is a failed login, within the same limit', async (t) => {
      const { server } = await openSite(t, place, { LOGIN_FAILURES_MAX: '2' });
      const token = await logIn(server, 'ann', old);
      const wrong = { password: 'wrong', newPassword: next };
      assert.deepEqual(await codeOf(await change(server, token, wrong)), [
        401,
        'invalid_credentials',
      ]);
      assert.equal((await askLogin(server, 'ann', 'wrong')).status, 401);
      const right = { password: old, newPassword: next };
      const refused = await change(server, token, right);
      assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
      assert.deepEqual(await codeOf(refused), [429, 'too_many_requests']);
      assert.equal((await askLogin(server, 'ann', old)).status, 429);
      assert.equal((await askProfile(server, `Bearer ${token}`)).status, 200);
      const failed = server.logged.filter(({ event }) => event === 'login failed');
      assert.deepEqual(
        failed.map(({ account, action }) => [account, action]),
        [
          ['ann', 'POST /auth/password'],
          ['ann', 'POST /auth/login'],
        ],
      );
    });

    it('of two changes from one password one is done', async (t) => {
      const { server, other } = await openSite(t, place);
      const token = await logIn(server, 'ann', old);
      const changing = [server, other].map(async (node, at) =>
        change(node, token, { password: old, newPassword: `${next} ${at}` }),
      );
      const statuses = (await Promise.all(changing)).map(({ status }) => status);
      assert.deepEqual(new Set(statuses), new Set([204, 401]));
      const at = statuses.indexOf(204);
      assert.equal((await askLogin(server, 'ann', `${next} ${at}`)).status, 200);
    });

    it('a password that the command refuses is refused, and one is stored composed', async (t) => {
      const { server } = await openSite(t, place);
      const token = await logIn(server, 'ann', old);
      const refuse = async (body: object, pointers: readonly string[]): Promise<void> => {
        const response = await change(server, token, body);
        const { errors } = (await response.json()) as { errors: { pointer: string }[] };
        assert.equal(response.status, 422, JSON.stringify(body).slice(0, 99));
        assert.deepEqual(
          errors.map(({ pointer }) => pointer),
          pointers,
        );
      };
      await refuse({}, ['/password', '/newPassword']);
      const long = 'x'.repeat(1_025);
      for (const newPassword of ['eleven char', long, 'a jar of\u0007 ink', 12]) {
        await refuse({ password: old, newPassword }, ['/newPassword']);
      }
      const composed = 'a jar of \u00e4\u00f6\u00fc ink';
      const given = { password: old, newPassword: composed.normalize('NFD') };
      assert.equal((await change(server, token, given)).status, 204);
      assert.equal((await askLogin(server, 'ann', composed)).status, 200);
      const missing = await server.send('POST', '/auth/password', given);
      assert.deepEqual(await codeOf(missing), [401, 'missing_token']);
    });

    it('that of a configured account is changed where it is configured', async (t) => {
      await checkConfigured((await openSite(t, place)).server);
    });
  });
}

test('a store in memory has configured accounts alone', async (t) => {
  await checkConfigured(await startServer(t));
});

async function checkConfigured(server: TestServer): Promise<void> {
  const token = await logIn(server);
  const response = await change(server, token, { password: 'password', newPassword: next });
  const { code, error } = (await response.json()) as Record<string, string>;
  assert.deepEqual([response.status, code], [403, 'forbidden']);
  assert.match(error ?? '', /USERS_FILE/);
  assert.equal((await askProfile(server, `Bearer ${token}`)).status, 200);
  assert.equal((await askLogin(server, 'user', 'password')).status, 200);
}
