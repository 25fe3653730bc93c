/** `POST /auth/password`: an account changes its own password (R51). */

import assert from 'node:assert/strict';
import { describe, it, test, type TestContext } from 'node:test';
import { runCommandHere } from '../support/command.ts';
import { refusal } from '../support/files.ts';
import { pluck } from '../support/lists.ts';
import { askLogin, askProfile, logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { anyDurable, durableStores, type StorePlace } from '../support/stores.ts';

const [old, next] = ['a jar of black ink', 'a jar of blue blots'];
const both = { password: old, newPassword: next };

/** Two nodes whose store has the account `ann`, and a token of it. */
async function openSite(t: TestContext, place: StorePlace, more = {}) {
  const env = { STORE_URL: await place.newUrl(t), JWT_SECRET: 's'.repeat(32), ...more };
  const args = ['accounts', 'add', 'ann', '--email', 'ann@example.org', '--role', 'USER'];
  assert.equal((await runCommandHere(args, { env, input: `${old}\n` })).code, 0);
  const start = () => startServer(t, { env, probed: false });
  const [server, other] = [await start(), await start()];
  return { server, other, token: await logIn(server, 'ann', old) };
}

const change = (server: TestServer, token: string, body: object): Promise<Response> =>
  server.send('POST', '/auth/password', body, { Authorization: `Bearer ${token}` });

for (const place of durableStores) {
  describe(`on a store ${place.name}`, { skip: place.skip }, () => {
    it('another password ends all tokens of before, on every node', async (t) => {
      const { server, other, token } = await openSite(t, place);
      const [second, demo] = [await logIn(other, 'ann', old), await logIn(server)];
      const changed = await change(server, token, both);
      assert.deepEqual([changed.status, await changed.text()], [204, '']);
      assert.equal(changed.headers.get('cache-control'), 'no-store');
      // In every other place: `sessions.test.ts`.
      for (const node of [server, other]) {
        assert.equal((await askLogin(node, 'ann', old)).status, 401);
        const later = await logIn(node, 'ann', next);
        for (const [sent, status] of [
          [token, 401],
          [second, 401],
          [later, 200],
          [demo, 200],
        ] as const) {
          assert.equal((await askProfile(node, `Bearer ${sent}`)).status, status);
        }
      }
      const line = server.logged.find(({ action }) => action === 'POST /auth/password');
      const { event, account, client, requestId } = line ?? assert.fail();
      const id = changed.headers.get('x-request-id');
      assert.deepEqual([event, account, client, requestId], ['change', 'ann', '127.0.0.1', id]);
      assert.doesNotMatch(JSON.stringify(server.logged), /a jar of/);
    });

    it('of two changes from one password one is done', async (t) => {
      const { server, other, token } = await openSite(t, place);
      const changing = [server, other].map((node, at) =>
        change(node, token, { ...both, newPassword: `${next} ${at}` }),
      );
      const statuses = pluck(await Promise.all(changing), 'status');
      assert.deepEqual(new Set(statuses), new Set([204, 401]));
      const kept = `${next} ${statuses.indexOf(204)}`;
      assert.equal((await askLogin(server, 'ann', kept)).status, 200);
    });
  });
}

describe('a change of a password', { skip: anyDurable.skip }, () => {
  it('from a wrong one is a failed login, within the same limit', async (t) => {
    const { server, token } = await openSite(t, anyDurable, { LOGIN_FAILURES_MAX: '2' });
    const wrong = await change(server, token, { ...both, password: 'wrong' });
    assert.deepEqual(await refusal(wrong), [401, 'invalid_credentials']);
    assert.equal((await askLogin(server, 'ann', 'wrong')).status, 401);
    const refused = await change(server, token, both);
    assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
    assert.deepEqual(await refusal(refused), [429, 'too_many_requests']);
    assert.equal((await askLogin(server, 'ann', old)).status, 429);
    assert.equal((await askProfile(server, `Bearer ${token}`)).status, 200);
    const failed = server.logged.filter(({ event }) => event === 'login failed');
    const told = failed.map(({ account, action }) => `${String(account)} ${String(action)}`);
    assert.deepEqual(told, ['ann POST /auth/password', 'ann POST /auth/login']);
  });

  it('to one that the command refuses is refused, and one is stored composed', async (t) => {
    const { server, token } = await openSite(t, anyDurable);
    const long = 'x'.repeat(1_025);
    const bad = ['eleven char', long, 'a jar of\u0007 ink', 12];
    for (const [body, ...pointers] of [
      [{}, '/password', '/newPassword'],
      ...bad.map((newPassword) => [{ ...both, newPassword }, '/newPassword'] as const),
    ] as const) {
      const response = await change(server, token, body);
      const { errors } = (await response.json()) as { errors: { pointer: string }[] };
      assert.deepEqual([response.status, ...pluck(errors, 'pointer')], [422, ...pointers]);
    }
    const composed = 'a jar of \u00e4\u00f6\u00fc ink';
    const given = { password: old, newPassword: composed.normalize('NFD') };
    assert.equal((await change(server, token, given)).status, 204);
    assert.equal((await askLogin(server, 'ann', composed)).status, 200);
    const missing = await server.send('POST', '/auth/password', given);
    assert.deepEqual(await refusal(missing), [401, 'missing_token']);
    await checkConfigured(server);
  });
});

test('a store in memory has configured accounts alone', async (t) => {
  await checkConfigured(await startServer(t));
});

/** Such an account is changed where it is configured. */
async function checkConfigured(server: TestServer): Promise<void> {
  const token = await logIn(server);
  const response = await change(server, token, { ...both, password: 'password' });
  assert.match(await response.clone().text(), /USERS_FILE/);
  assert.deepEqual(await refusal(response), [403, 'forbidden']);
  assert.equal((await askProfile(server, `Bearer ${token}`)).status, 200);
}
