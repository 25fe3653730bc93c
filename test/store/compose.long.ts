/** What deploy/compose.yaml says, with processes in the place of its containers. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { assertWhole, fanOut } from '../support/fan-out.ts';
import { pluck } from '../support/lists.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { startNode } from '../support/program.ts';
import { database } from '../support/shared-postgres.ts';
import { projectFolder } from '../support/source.ts';
import { createDirectory } from '../support/uploads.ts';

/** `${NAME:-default}`, as Compose reads it. */
function fill(text: string): string {
  return text.replaceAll(/\$\{\w+:-(.*?)\}/g, '$1');
}

interface Compose {
  readonly services: Readonly<
    Record<string, { readonly environment: object; readonly volumes: readonly string[] }>
  >;
}

/** Each connection to the next node that takes it. */
async function startProxy(context: TestContext, urls: readonly string[]): Promise<string> {
  let next = 0;
  const server = createServer((near) => {
    const tryNext = (tries: number): void => {
      next += 1;
      const far = connect(Number(new URL(urls[next % urls.length] ?? '').port), '127.0.0.1');
      far.once('connect', () => near.pipe(far).pipe(near));
      far.on('error', () => (far.pending && tries > 1 ? tryNext(tries - 1) : near.destroy()));
      near.on('error', () => far.destroy()).on('close', () => far.destroy());
    };
    tryNext(urls.length);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('three nodes, PostgreSQL and a proxy are one service', { skip }, async (context) => {
  const text = await readFile(join(projectFolder, 'deploy/compose.yaml'), 'utf8');
  const { services } = parse(text) as Compose;
  const names = Object.keys(services).filter((name) => /^node\d$/.test(name));
  assert.equal(names.length, 3);
  const { environment, volumes } = services[names[0] ?? ''] ?? assert.fail();
  const settings = Object.entries(environment).map(([name, value]) => [name, fill(String(value))]);
  const env: Record<string, string> = { ...Object.fromEntries(settings), NODE_ENV: 'production' };
  // The clients of this test have no accounts, and comment on a post of the demo data.
  assert.deepEqual([env['REQUIRE_AUTH'], env['DEMO_DATA']], ['owners', 'false']);
  Object.assign(env, { REQUIRE_AUTH: 'none', DEMO_DATA: 'true' });
  // Each container has an address of its own.
  assert.equal(env['ADMIN_PORT'], '9464');
  delete env['ADMIN_PORT'];

  // The volume that all nodes mount.
  assert.deepEqual(volumes, [`files:${env['UPLOAD_DIR']}`]);
  env['UPLOAD_DIR'] = await createDirectory(context);
  const secrets = await createDirectory(context);

  const given = {
    STORE_URL_FILE: await database.createDatabase(),
    JWT_SECRET_FILE: 's'.repeat(44),
  };
  for (const [name, value] of Object.entries(given)) {
    assert.match(env[name] ?? '', /^\/run\/secrets\//, name);
    env[name] = join(secrets, name);
    await writeFile(env[name], `${value}\n`);
  }

  const nodes = await Promise.all(names.map(() => startNode(context, env)));
  const url = await startProxy(context, pluck(nodes, 'url'));
  const behind = nodes.map((node) => ({ ...node, url }));
  assertWhole(await fanOut({ nodes: behind, subscribers: 6, comments: 250, writers: 6 }));

  const body = JSON.stringify({ title: 'by the proxy' });
  const headers = { 'Content-Type': 'application/json', Connection: 'close' };
  const made = await fetch(`${url}/api/todos`, { method: 'POST', headers, body });
  const location = made.headers.get('location') ?? '';
  assert.ok(location.startsWith(`${env['PUBLIC_URL']}/api/todos/`), location);
  const { pathname } = new URL(location);
  const responses = await Promise.all(nodes.map((node) => fetch(node.url + pathname)));
  assert.deepEqual(new Set(pluck(responses, 'status')), new Set([200]));

  const form = new FormData();
  form.append('part', new Blob(['shared']), 'shared.txt');
  await fetch(`${url}/api/multiparts/list`, { method: 'POST', body: form });
  for (const [at, node] of nodes.entries()) {
    const files = await (await fetch(`${node.url}/api/multiparts`)).formData();
    assert.ok(files.has('shared.txt'), `node ${at}`);
  }

  await nodes[0]?.signal('SIGTERM');
  assert.equal(nodes[0]?.logged.at(-1)?.['event'], 'stopped');
  for (let turn = 0; turn < 6; turn += 1) {
    const response = await fetch(url + pathname, { headers: { Connection: 'close' } });
    assert.equal(response.status, 200, `round ${turn}`);
  }
});
