/** What is loaded after the start: the program's folder may be replaced then (upgrades). */

import assert from 'node:assert/strict';
import { cp, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { times } from './support/lists.ts';
import { runProgram } from './support/program.ts';
import { stores } from './support/stores.ts';
import { until } from './support/until.ts';
import { createDirectory } from './support/uploads.ts';
import { connectReady, subscribe } from './support/ws-clients.ts';

const titles = '{ allPosts { title } }';

for (const { name, skip, newUrl } of stores) {
  test(`the folder of the program may be replaced while it runs, ${name}`, { skip }, async (t) => {
    const folder = await createDirectory(t);
    const file = await copyProgram(folder);
    const env = { STORE_URL: await newUrl(t), UPLOAD_DIR: folder };
    // Packages are loaded from the folder too, not from where its link leads.
    const flags = ['--preserve-symlinks', '--preserve-symlinks-main'];
    const program = await runProgram(t, { file, env, flags });
    const { port, url } = await program.listening();
    await until('all is loaded', () => program.output().includes('"loaded"'));
    await rename(join(folder, 'dist'), join(folder, 'away'));
    await rm(join(folder, 'node_modules'));
    const send = async (path: string, init?: RequestInit): Promise<number> => {
      const response = await fetch(`${url}${path}`, init);
      await response.arrayBuffer();
      return response.status;
    };
    const headers = { 'Content-Type': 'application/json' };
    const body = JSON.stringify({ query: titles });
    assert.equal(await send('/graphql', { method: 'POST', headers, body }), 200);
    const form = new FormData();
    form.set('part', new Blob(['text']), 'a.txt');
    assert.equal(await send('/api/multiparts/simple', { method: 'POST', body: form }), 200);
    const patch = { 'Content-Type': 'application/merge-patch+json' };
    const change = { method: 'PATCH', headers: patch, body: '{"content":"new"}' };
    assert.equal(await send('/api/articles/1', change), 204);
    const creation = { method: 'POST', headers, body: '{"title":"a","content":"b"}' };
    const created = times(30).map(() => send('/posts', creation)); // needs more connections
    assert.deepEqual(new Set(await Promise.all(created)), new Set([201]));
    for (const path of ['/', '/docs/', '/graphql-ui/', '/graphql-ui/main.js', '/openapi.json']) {
      for (const encoding of ['gzip', 'identity']) {
        const page = { headers: { Accept: 'text/html, */*;q=0.1', 'Accept-Encoding': encoding } };
        assert.equal(await send(path, page), 200, path);
      }
    }
    const client = await connectReady(port);
    assert.equal((await client.ask(subscribe('1', '{ __typename }'))).type, 'next');
    await client.close();
  });
}

test('a failed load of the engine is logged, and tried again at the next request', async (t) => {
  const folder = await createDirectory(t);
  const file = await copyProgram(folder);
  const endpoint = join(folder, 'dist', 'graphql', 'endpoint.js');
  await rename(endpoint, `${endpoint}.away`);
  const program = await runProgram(t, { file });
  const { url } = await program.listening();
  const ask = async (): Promise<number> =>
    (await fetch(`${url}/graphql?query=${encodeURIComponent(titles)}`)).status;
  assert.equal(await ask(), 500);
  assert.match(program.output(), /the GraphQL endpoint cannot be loaded/);
  await rename(`${endpoint}.away`, endpoint);
  assert.equal(await ask(), 200);
});

/** Returns the file to run. */
async function copyProgram(folder: string): Promise<string> {
  await cp('dist', join(folder, 'dist'), { recursive: true });
  await cp('package.json', join(folder, 'package.json'));
  await symlink(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  return join(folder, 'dist', 'server.js');
}
