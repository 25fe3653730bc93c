/** Who may replace and remove a stored file (R36). */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { file, form, refusal } from '../support/files.ts';
import { boundary, multipartBody, part } from '../support/multipart.ts';
import { logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { stores } from '../support/stores.ts';
import { createDirectory } from '../support/uploads.ts';

type Headers = Readonly<Record<string, string>>;

const upload = (server: TestServer, name: string, headers: Headers): Promise<Response> => {
  const body = form({ part: file('text', name) });
  return server.fetch('/api/multiparts/simple', { method: 'POST', body, headers });
};

const uploadInGraphql = (server: TestServer, name: string, headers: Headers): Promise<Response> => {
  const query = 'mutation ($f: Upload!) { upload(file: $f) }';
  const body = multipartBody([
    part('operations', JSON.stringify({ query, variables: { f: null } })),
    part('map', JSON.stringify({ 0: ['variables.f'] })),
    part('0', 'text', { fileName: name }),
  ]);
  const type = { 'Content-Type': `multipart/form-data; boundary=${boundary}` };
  return server.fetch('/graphql', { method: 'POST', body, headers: { ...type, ...headers } });
};

const remove = (server: TestServer, name: string, headers: Headers): Promise<Response> =>
  server.fetch(`/api/multiparts/${name}`, { method: 'DELETE', headers });

const bearers = async (server: TestServer): Promise<readonly [Headers, Headers]> => {
  const tokens = [await logIn(server), await logIn(server, 'admin')];
  const [user = {}, admin = {}] = tokens.map((token) => ({ Authorization: `Bearer ${token}` }));
  return [user, admin];
};

for (const { name, skip, newUrl } of stores) {
  suite(`a stored file, ${name}`, { skip }, () => {
    test('is replaced and removed by the account that stored it, or an administrator', async (t) => {
      const env = { STORE_URL: await newUrl(t), REQUIRE_AUTH: 'owners' };
      const server = await startServer(t, { env });
      const [user, admin] = await bearers(server);
      for (const by of [user, user]) assert.equal((await upload(server, 'own', by)).status, 200);
      assert.equal((await upload(server, 'of-admin', admin)).status, 200);
      assert.equal((await upload(server, 'taken', user)).status, 200);
      assert.equal((await upload(server, 'taken', admin)).status, 200);
      for (const other of ['of-admin', 'taken']) {
        const refused = await upload(server, other, user);
        assert.deepEqual(await refusal(refused), [403, 'forbidden'], other);
        const inGraphql = await uploadInGraphql(server, other, user);
        assert.match(await inGraphql.text(), /"code":"FORBIDDEN"/, other);
        const kept = await remove(server, other, user);
        assert.deepEqual(await refusal(kept), [403, 'forbidden'], other);
      }
      assert.match(await (await uploadInGraphql(server, 'made', user)).text(), /"upload":true/);
      for (const own of ['own', 'made']) {
        assert.equal((await remove(server, own, user)).status, 204, own);
      }
      assert.equal((await upload(server, 'left', user)).status, 200);
      assert.equal((await remove(server, 'left', admin)).status, 204);
    });

    test('that nobody owns is for administrators alone, and for all without owners', async (t) => {
      const STORE_URL = await newUrl(t);
      const UPLOAD_DIR = await createDirectory(t);
      const open = await startServer(t, { env: { STORE_URL, UPLOAD_DIR } });
      for (const by of [{}, {}]) assert.equal((await upload(open, 'a', by)).status, 200);
      for (const made of ['a', 'b', 'c']) assert.equal((await upload(open, made, {})).status, 200);
      assert.equal((await remove(open, 'c', {})).status, 204);
      if (STORE_URL === 'memory:') return; // its files are those of one run
      await open.stop();
      for (const REQUIRE_AUTH of ['owners', 'members']) {
        const server = await startServer(t, { env: { STORE_URL, UPLOAD_DIR, REQUIRE_AUTH } });
        const [user, admin] = await bearers(server);
        const own = REQUIRE_AUTH === 'owners' ? 'a' : 'b';
        const refused = await upload(server, own, user);
        assert.deepEqual(await refusal(refused), [403, 'forbidden'], REQUIRE_AUTH);
        const inGraphql = await (await uploadInGraphql(server, own, user)).text();
        assert.match(inGraphql, /"code":"FORBIDDEN"/, REQUIRE_AUTH);
        const kept = await remove(server, own, user);
        assert.deepEqual(await refusal(kept), [403, 'forbidden'], REQUIRE_AUTH);
        for (const send of [upload, uploadInGraphql]) {
          assert.equal((await send(server, own, admin)).status, 200, REQUIRE_AUTH);
        }
        assert.equal((await remove(server, own, admin)).status, 204, REQUIRE_AUTH);
        await server.stop();
      }
    });
  });
}
