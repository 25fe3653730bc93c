/**
 * The program as one file, in a folder that has nothing else: with all that it may be forbidden.
 */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { runProgram } from './support/program.js';

const root = fileURLToPath(new URL('..', import.meta.url));
/** `--permission` has a stable name since Node 24. */
const permissions = process.allowedNodeEnvironmentFlags.has('--permission');

interface Manifest {
  readonly version: string;
}

let folder: string;
let file: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'inkwell-bundle-'));
  file = join(folder, 'app', 'inkwell.mjs');
  await mkdir(join(folder, 'data'));
  await promisify(execFile)(process.execPath, [join(root, 'scripts', 'bundle.mjs'), file]);
});
after(() => rm(folder, { recursive: true, force: true }));

async function useAllOf(base: string): Promise<void> {
  const hello = await fetch(`${base}/hello`);
  assert.equal(hello.status, 200);

  const json = { 'content-type': 'application/json' };
  const query = '{ allPosts { id comments { id } author { name } } }';
  const asked = await fetch(`${base}/graphql`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ query }),
  });
  const { data } = (await asked.json()) as { data: { allPosts: { id: string }[] } };
  const post = data.allPosts[0]?.id;
  assert.ok(post !== undefined);

  const patched = await fetch(`${base}/api/articles/1`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json-patch+json' },
    body: '[{"op":"replace","path":"/title","value":"patched"}]',
  });
  assert.ok(patched.ok, `${patched.status}`);

  const form = new FormData();
  form.append('name', 'note.txt');
  form.append('part', new Blob(['bytes']), 'note.txt');
  const stored = await fetch(`${base}/api/multiparts/simple`, { method: 'POST', body: form });
  assert.ok(stored.ok, `${stored.status}`);

  const client = createClient({
    url: `${base.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
  });
  const events = client.iterate({ query: 'subscription { commentAdded { content } }' });
  const first = events.next();
  for (let seen = false; !seen;) {
    // A subscription has no response of its own that says that it runs: comments until one arrives.
    const made = await fetch(`${base}/posts/${post}/comments`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ content: 'hello', name: 'Ann' }),
    });
    assert.ok(made.ok, await made.text());
    seen = await Promise.race([
      first.then(() => true),
      new Promise<false>((r) => setTimeout(r, 50, false)),
    ]);
  }
  await client.dispose();
}

describe('the bundle', () => {
  it('does all of the contract in a folder without packages', async (context) => {
    const server = await runProgram(context, { file });
    const { port } = await server.listening();
    await useAllOf(`http://127.0.0.1:${port}`);
    assert.deepEqual(await readdir(join(folder, 'app')), ['inkwell.mjs']);
  });

  it('knows its version', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [file, '--version']);
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Manifest;
    assert.equal(stdout, `${version}\n`);
  });

  it('shows the browser UI of the folder beside it', async (context) => {
    const beside = join(folder, 'app', 'graphql-ui');
    await cp(join(root, 'dist', 'graphql-ui'), beside, { recursive: true });
    context.after(() => rm(beside, { recursive: true }));
    const server = await runProgram(context, { file });
    const { port } = await server.listening();
    const page = await fetch(`http://127.0.0.1:${port}/graphql-ui/`);
    assert.match(await page.text(), /<title>Inkwell/);
  });

  it(
    'needs its own folders only, and makes no code of texts',
    { skip: !permissions && 'this version of Node has no --permission' },
    async (context) => {
      const data = join(folder, 'data');
      const flags = [
        '--permission',
        `--allow-fs-read=${join(folder, 'app')}`,
        `--allow-fs-read=${data}`,
        `--allow-fs-write=${data}`,
        '--disallow-code-generation-from-strings',
      ];
      const env = { STORE_URL: `sqlite://${join(data, 'inkwell.db')}` };
      const server = await runProgram(context, { file, flags, folder: data, env });
      const { port } = await server.listening();
      await useAllOf(`http://127.0.0.1:${port}`);
      assert.equal(server.errors(), '');
    },
  );
});
