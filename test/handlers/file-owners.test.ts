/** Who may replace and remove a stored file (R36). */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { codes, postParts } from '../support/graphql-http.ts';
import { file, form, refusal } from '../support/files.ts';
import { logIn } from '../support/login.ts';
import { type Sent, startServer, type TestServer } from '../support/server.ts';
import { stores } from '../support/stores.ts';
import { createDirectory } from '../support/uploads.ts';

type Ask = (server: TestServer, name: string, headers: Sent) => Promise<unknown>;

/** The status of a response, and the code of a refusal. */
const told = async (asked: Promise<Response>): Promise<unknown> => {
  const response = await asked;
  return response.status < 300 ? response.status : refusal(response);
};
const upload: Ask = (server, name, headers) => {
  const body = form({ part: file('text', name) });
  return told(server.fetch('/api/multiparts/simple', { method: 'POST', body, headers }));
};
const remove: Ask = (server, name, headers) =>
  told(server.fetch(`/api/multiparts/${name}`, { method: 'DELETE', headers }));
const uploadInGraphql: Ask = async (server, name, headers) => {
  const query = 'mutation ($f: Upload!) { upload(file: $f) }';
  const operations = ['operations', { query, variables: { f: null } }] as const;
  const parts = [operations, ['map', { 0: ['variables.f'] }], ['0', 'text', name]] as const;
  const [code] = codes((await postParts(server, parts, headers)).body);
  return code === 'FORBIDDEN' ? [403, 'forbidden'] : (code ?? 200);
};

const bearers = async (server: TestServer): Promise<readonly Sent[]> => {
  const tokens = [await logIn(server), await logIn(server, 'admin')];
  return tokens.map((token) => ({ Authorization: `Bearer ${token}` }));
};

/** Nobody but its owner, and administrators, changes the file. */
async function refuse(server: TestServer, name: string, headers: Sent): Promise<void> {
  for (const ask of [upload, uploadInGraphql, remove]) {
    assert.deepEqual(await ask(server, name, headers), [403, 'forbidden'], name);
  }
}

for (const { name, skip, newUrl } of stores) {
  suite(`a stored file, ${name}`, { skip }, () => {
    test('is replaced and removed by the account that stored it, or an administrator', async (t) => {
      const env = { STORE_URL: await newUrl(t), REQUIRE_AUTH: 'owners' };
      const server = await startServer(t, { env });
      const [user = {}, admin = {}] = await bearers(server);
      for (const [ask, of, by, status] of [
        [upload, 'own', user, 200],
        [upload, 'own', user, 200],
        [upload, 'of-admin', admin, 200],
        [upload, 'taken', user, 200],
        [upload, 'taken', admin, 200],
        [uploadInGraphql, 'made', user, 200],
        [remove, 'own', user, 204],
        [remove, 'made', user, 204],
        [upload, 'left', user, 200],
        [remove, 'left', admin, 204],
      ] as const) {
        assert.equal(await ask(server, of, by), status, of);
      }
      for (const other of ['of-admin', 'taken']) await refuse(server, other, user);
    });

    test('that nobody owns is for administrators alone, and for all without owners', async (t) => {
      const env = { STORE_URL: await newUrl(t), UPLOAD_DIR: await createDirectory(t) };
      const open = await startServer(t, { env });
      for (const of of ['a', 'a', 'b', 'c']) assert.equal(await upload(open, of, {}), 200);
      assert.equal(await remove(open, 'c', {}), 204);
      if (env.STORE_URL === 'memory:') return; // its files are those of one run
      await open.stop();
      for (const [REQUIRE_AUTH, of] of [
        ['owners', 'a'],
        ['members', 'b'],
      ] as const) {
        const server = await startServer(t, { env: { ...env, REQUIRE_AUTH } });
        const [user = {}, admin = {}] = await bearers(server);
        await refuse(server, of, user);
        for (const ask of [upload, uploadInGraphql]) {
          assert.equal(await ask(server, of, admin), 200, REQUIRE_AUTH);
        }
        assert.equal(await remove(server, of, admin), 204, REQUIRE_AUTH);
        await server.stop();
      }
    });
  });
}
