/**
 * The program as one file, in a folder that has nothing else: with all that it may be forbidden; and
 * as an executable, which has Node inside.
 */

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { skipPostgres } from './support/postgres.ts';
import { type Program, runProgram } from './support/program.ts';
import { sharePostgres } from './support/shared-postgres.ts';
import { connectReady, subscribe } from './support/ws-clients.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
/** `--permission` has a stable name since Node 24. */
const permissions = process.allowedNodeEnvironmentFlags.has('--permission');

interface Home {
  readonly ui?: string;
  readonly reference?: string;
  readonly routes: readonly string[];
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
  const send = async (path: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(base + path, init);
    assert.ok(response.ok, `${path} ${response.status}`);
    return response;
  };
  const json = (value: unknown, method = 'POST', type = 'json'): RequestInit => {
    const headers = { 'content-type': `application/${type}` };
    return { method, headers, body: JSON.stringify(value) };
  };
  await send('/hello', {});
  const query = '{ allPosts { id comments { id } author { name } } }';
  const asked = await send('/graphql', json({ query }));
  const { data } = (await asked.json()) as { data: { allPosts: { id: string }[] } };
  const post = data.allPosts[0]?.id ?? '';
  const operations = [{ op: 'replace', path: '/title', value: 'patched' }];
  await send('/api/articles/1', json(operations, 'PATCH', 'json-patch+json'));
  const body = new FormData();
  body.append('name', 'note.txt');
  body.append('part', new Blob(['bytes']), 'note.txt');
  await send('/api/multiparts/simple', { method: 'POST', body });
  const client = await connectReady(Number(new URL(base).port));
  client.send(subscribe('s', 'subscription { commentAdded { content } }'));
  await client.settle();
  await send(`/posts/${post}/comments`, json({ content: 'hello' }));
  const payload = { data: { commentAdded: { content: 'hello' } } };
  assert.deepEqual(await client.next(), { id: 's', type: 'next', payload });
  await client.close();
}

describe('the bundle', () => {
  it('does all of the contract in a folder without packages', async (context) => {
    const server = await runProgram(context, { file });
    await useAllOf((await server.listening()).url);
    assert.deepEqual(await readdir(join(folder, 'app')), ['inkwell.mjs']);
  });

  it('names no page where it has none, and leads no browser to one', async (context) => {
    const server = await runProgram(context, { file });
    const { url } = await server.listening();
    const browser = { headers: { accept: 'text/html,*/*;q=0.8' }, redirect: 'manual' } as const;
    const response = await fetch(url, browser);
    const { routes, ...others } = (await response.json()) as { routes: readonly string[] };
    assert.deepEqual(others, { name: 'Inkwell' });
    assert.ok(routes.includes('GET /posts') && routes.includes('GET /readyz'));
    const pages = ['/graphql-ui', '/graphql-ui/', '/docs', '/docs/', '/openapi.json'];
    const named = routes.filter((route) => /graphql-ui|docs|openapi/.test(route));
    assert.deepEqual(named, []);
    for (const path of pages) assert.equal((await fetch(url + path, browser)).status, 404, path);
    assert.equal((await fetch(`${url}/graphql`, browser)).status, 400);
  });

  it('shows the browser UI of the folder beside it', async (context) => {
    const beside = join(folder, 'app', 'graphql-ui');
    await cp(join(root, 'dist', 'graphql-ui'), beside, { recursive: true });
    context.after(() => rm(beside, { recursive: true }));
    const server = await runProgram(context, { file });
    const { port } = await server.listening();
    const page = await fetch(`http://127.0.0.1:${port}/graphql-ui/`);
    assert.match(await page.text(), /<title>Inkwell/);
    const home = (await (await fetch(`http://127.0.0.1:${port}/`)).json()) as Home;
    assert.deepEqual([home.ui, home.reference], ['/graphql-ui/', undefined]);
    assert.ok(home.routes.includes('GET /graphql-ui/*'));
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
      await useAllOf((await server.listening()).url);
      assert.equal(server.errors(), '');
    },
  );
});

/** The Node that makes the executable, and is inside. Those before 26 make none of ES modules. */
const node = process.env['EXECUTABLE_NODE'] ?? process.execPath;
const nodeVersion = execFileSync(node, ['--version'], { encoding: 'utf8' });
const skip =
  Number.parseInt(nodeVersion.slice(1), 10) < 26 &&
  'only Node 26 makes executables, and EXECUTABLE_NODE names none';

describe('the executable', { skip }, () => {
  let executable: string;
  before(async () => {
    executable = join(folder, 'executable', 'inkwell');
    await mkdir(join(folder, 'executable'));
    await run(process.execPath, [join(root, 'scripts', 'executable.mjs'), node, executable]);
  });

  const run = promisify(execFile);

  const postgres = async () => (await sharePostgres()).createDatabase();
  for (const [what, skipped, newUrl] of [
    ['in memory', false, () => 'memory:'],
    ['in SQLite', false, () => `sqlite://${join(folder, 'executable.db')}`],
    ['in PostgreSQL', skipPostgres, postgres],
  ] as const) {
    it(`does all of the contract in a folder of its own, ${what}`, { skip: skipped }, async (t) => {
      const server = await runProgram(t, { executable, env: { STORE_URL: await newUrl() } });
      await useAllOf((await server.listening()).url);
      server.child.kill('SIGTERM');
      assert.deepEqual([(await server.ended()).code, server.errors()], [0, '']);
      assert.deepEqual(await readdir(join(folder, 'executable')), ['inkwell']);
    });
  }

  it('has the pages inside, as the plain program sends them', async (context) => {
    const programs = [await runProgram(context), await runProgram(context, { executable })];
    const pages = '/ /graphql-ui/ /docs/ /openapi.json /docs/swagger-ui.css /docs/x';
    for (const path of pages.split(' ')) {
      const ask = async (program: Program) => {
        const headers = { accept: 'text/html, */*;q=0.1' };
        const response = await fetch((await program.listening()).url + path, { headers });
        const [type, etag] = [response.headers.get('content-type'), response.headers.get('etag')];
        const { status } = response;
        return { status, type, etag, text: status === 200 ? await response.text() : '' };
      };
      const [expected, sent] = await Promise.all(programs.map(ask));
      assert.deepEqual(sent, expected, path);
      assert.equal(sent?.status, path === '/docs/x' ? 404 : 200, path);
    }
  });

  it('runs the commands', async () => {
    const manifest = await readFile(join(root, 'package.json'), 'utf8');
    const { version } = JSON.parse(manifest) as { readonly version: string };
    assert.equal((await run(executable, ['--version'])).stdout, `${version}\n`);
    assert.match((await run(executable, ['--help'])).stdout, /^usage: inkwell /);
    const env = { STORE_URL: `sqlite://${join(folder, 'accounts.db')}` };
    const add = ['accounts', 'add', 'ann', '--email', 'ann@example.org'];
    const added = run(executable, add, { env });
    added.child.stdin?.end('a long password of Ann\n');
    await added;
    assert.match((await run(executable, ['accounts', 'list'], { env })).stdout, /ann@example\.org/);
    assert.match((await run(executable, ['--check'], { env })).stdout, /accounts\.db/);
    const missing = { env: { STORE_URL: `sqlite://${join(folder, 'missing', 'inkwell.db')}` } };
    await assert.rejects(run(executable, ['--check'], missing), { code: 1 });
  });
});
