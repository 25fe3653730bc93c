/** Beside plain operations: the schema, trusted documents. */

import assert from 'node:assert/strict';
import { cp, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { codes, post } from '../support/graphql-http.js';
import { runProgram } from '../support/program.js';
import { startServer, type TestServer } from '../support/server.js';

const titles = '{ allPosts { title } }';

const start = (context: TestContext, env: Record<string, string> = {}): Promise<TestServer> =>
  startServer(context, { env });

test('the schema is served as a file, with its directive and an ETag', async (context) => {
  const server = await start(context);
  const response = await server.fetch('/graphql/schema.graphql');
  const text = await response.text();
  assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
  assert.match(text, /title: String! @uppercase/);
  const etag = response.headers.get('etag') ?? '';
  for (const value of [etag, `"x", W/${etag}`, '*']) {
    const same = await server.fetch('/graphql/schema.graphql', {
      headers: { 'If-None-Match': value },
    });
    assert.deepEqual([same.status, await same.text()], [304, '']);
  }
  const other = { 'If-None-Match': '"x"', Accept: 'application/graphql' };
  const again = await server.fetch('/graphql/schema.graphql', { headers: other });
  assert.deepEqual(
    [again.status, again.headers.get('content-type')],
    [200, 'application/graphql; charset=utf-8'],
  );
  assert.equal(await again.text(), text);
  const unmet = await server.fetch('/graphql/schema.graphql', { headers: { Accept: 'image/png' } });
  assert.equal(unmet.status, 406);
  await unmet.text();
});

test('a manifest of trusted documents is read at the start', async (context) => {
  const first = await start(context);
  const path = join(first.folder, 'manifest.json');
  await writeFile(path, JSON.stringify({ titles }));
  const server = await start(context, { TRUSTED_DOCUMENTS: path });
  assert.equal(codes((await post(server, { query: titles })).body).length, 0);
  const persistedQuery = { version: 1, sha256Hash: 'titles' };
  assert.equal(codes((await post(server, { extensions: { persistedQuery } })).body).length, 0);
  const other = await post(server, { query: '{ allPosts { id } }' });
  assert.deepEqual(codes(other.body), ['BAD_USER_INPUT']);
  await assert.rejects(
    start(context, { TRUSTED_DOCUMENTS: join(first.folder, 'none') }),
    /TRUSTED_/,
  );
});

test('a failed load of the engine is logged, and tried again at the next request', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-load-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await cp('dist', join(folder, 'dist'), { recursive: true });
  await cp('package.json', join(folder, 'package.json'));
  await symlink(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  const endpoint = join(folder, 'dist', 'graphql', 'endpoint.js');
  await rename(endpoint, `${endpoint}.away`);
  const program = await runProgram(t, { file: join(folder, 'dist', 'server.js') });
  const { port } = await program.listening();
  const ask = async (): Promise<number> => {
    const headers = { 'Content-Type': 'application/json' };
    const request = { method: 'POST', headers, body: JSON.stringify({ query: titles }) };
    return (await fetch(`http://127.0.0.1:${port}/graphql`, request)).status;
  };
  assert.equal(await ask(), 500);
  assert.match(program.output(), /the GraphQL endpoint cannot be loaded/);
  await rename(`${endpoint}.away`, endpoint);
  assert.equal(await ask(), 200);
});
