/** Limits that no other test crosses by their setting; and that every limit is crossed somewhere. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { settings } from '../dist/config.js';
import { jsonPatch, refusal, start } from './support/articles.js';
import { post } from './support/graphql-http.js';
import { runProgram } from './support/program.js';
import { ask } from './support/raw-client.js';
import { startServer } from './support/server.js';
import { projectFolder } from './support/source.js';
import { connectReady } from './support/ws-clients.js';
import { keepOthersServed } from './support/prober.js';

keepOthersServed();

test('every limit and time is set by a test of its own', () => {
  const folder = join(projectFolder, 'test');
  const tests = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:test|long)\.ts$/.test(name) && name !== 'config.test.ts')
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
  const limits = Object.values(settings)
    .map(({ name }) => name)
    .filter((name) => /_(?:MAX|SECONDS)$/.test(name));
  assert.deepEqual(
    limits.filter((name) => !new RegExp(`\\b${name}\\b['\\]]*[:=]`).test(tests)),
    [],
  );
});

test('HEADER_BYTES_MAX: headers up to it are read, longer ones are 431', async (t) => {
  const { port } = await startServer(t, { env: { HEADER_BYTES_MAX: '2000' } });
  const sized = (bytes: number): Promise<{ readonly status: number }> =>
    ask(t, port, [
      'GET /hello HTTP/1.1',
      'Host: a',
      `X: ${'x'.repeat(bytes)}`,
      'Connection: close',
    ]);
  assert.equal((await sized(1_800)).status, 200);
  assert.equal((await sized(2_100)).status, 431);
});

test('TARGET_BYTES_MAX: a target at it is read, one byte more is 414', async (t) => {
  const server = await startServer(t, { env: { TARGET_BYTES_MAX: '64' } });
  const sized = (bytes: number): Promise<Response> => server.fetch('/hello?'.padEnd(bytes, 'x'));
  assert.equal((await sized(64)).status, 200);
  assert.equal((await sized(65)).status, 414);
});

test('LOGIN_QUEUE_MAX: with none that may wait, a third login at once is 503', async (t) => {
  const server = await startServer(t, { env: { LOGIN_QUEUE_MAX: '0' } });
  const login = (): Promise<Response> =>
    server.send('POST', '/auth/login', { username: 'user', password: 'password' });
  const answers = await Promise.all(Array.from({ length: 12 }, login));
  const statuses = answers.map(({ status }) => status);
  assert.deepEqual(new Set(statuses), new Set([200, 503]));
  for (const { status, headers } of answers) {
    assert.equal(headers.has('retry-after'), status === 503);
  }
  assert.equal((await login()).status, 200);
});

test('LOG_LINES_PER_SECOND_MAX: more lines than that are counted, not written', async (t) => {
  const program = await runProgram(t, { env: { LOG_LINES_PER_SECOND_MAX: '5' } });
  const { port } = await program.listening();
  const form = new FormData();
  for (let number = 0; number < 200; number += 1) form.append(`${number}`, new Blob(['x']), 'a');
  const list = `http://127.0.0.1:${port}/api/multiparts/list`;
  // Each file is a line. The line about what was dropped comes with the first of a later second.
  while (!program.output().includes('log lines dropped')) {
    assert.equal((await fetch(list, { method: 'POST', body: form })).status, 200);
  }
  const seconds = new Map<string, number>();
  for (const line of program.output().trimEnd().split('\n')) {
    const { time } = JSON.parse(line) as { readonly time: string };
    const second = time.slice(0, 19);
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  }
  // The line that tells of those that were dropped comes on top.
  for (const count of seconds.values()) assert.ok(count <= 6, `${count} lines`);
});

test('ANSWER_CACHE_BYTES_MAX: 0 keeps nothing and changes no answer', async (t) => {
  const server = await startServer(t, { env: { ANSWER_CACHE_BYTES_MAX: '0' } });
  const read = async (): Promise<string> => (await server.fetch('/posts')).text();
  const before = await read();
  assert.equal(await read(), before);
  await server.send('POST', '/posts', { title: 'a', content: 'b' });
  assert.notEqual(await read(), before);
});

test('PATCH_OPERATIONS_MAX: as many operations are applied, one more is 413', async (t) => {
  const server = await start(t, { PATCH_OPERATIONS_MAX: '3' });
  const patch = (count: number): Promise<Response> => {
    const operation = { op: 'add', path: '/tags/-', value: 'x' };
    const operations = Array.from({ length: count }, () => operation);
    return server.patch('/api/articles/1', jsonPatch, operations);
  };
  assert.equal((await patch(3)).status, 204);
  assert.match(await refusal(await patch(4)), /^413 /);
  const { tags } = (await server.get('/api/articles/1')) as { readonly tags: unknown[] };
  assert.equal(tags.length, 5);
});

test('GRAPHQL_BATCH_MAX: as many operations run, one more is 413', async (t) => {
  const server = await startServer(t, { env: { GRAPHQL_BATCH_MAX: '3' } });
  const batch = (count: number): unknown[] =>
    Array.from({ length: count }, () => ({ query: '{ __typename }' }));
  const answer = await post(server, batch(3));
  assert.deepEqual([answer.status, (answer.body as unknown[]).length], [200, 3]);
  assert.equal((await post(server, batch(4))).status, 413);
});

test('GRAPHQL_ERRORS_MAX: a result tells of no more errors', async (t) => {
  const server = await startServer(t, { env: { GRAPHQL_ERRORS_MAX: '3' } });
  const count = async (query: string, variables?: unknown): Promise<number> => {
    const { body } = await post(server, { query, variables });
    return (body as { readonly errors: unknown[] }).errors.length;
  };
  assert.equal(await count('{ a b }'), 2);
  // One more may say that there are more.
  assert.ok((await count(`{ ${'x '.repeat(50)} }`)) <= 4);
  const unknown = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${at}`, 1]));
  const create = 'mutation ($i: CreatePostInput!) { createPost(createPostInput: $i) }';
  assert.ok((await count(create, { i: unknown })) <= 4);
  const blank = 'createPost(createPostInput: {title: "", content: ""})';
  assert.ok((await count(`mutation { a: ${blank} b: ${blank} }`)) <= 4);
});

test('SUBSCRIPTIONS_DISTINCT_MAX: one different subscription more is refused', async (t) => {
  const server = await startServer(t, { env: { SUBSCRIPTIONS_DISTINCT_MAX: '2' } });
  const client = await connectReady(server.port, { protocols: ['graphql-transport-ws'] });
  const subscribe = (id: string, field: string): void => {
    const query = `subscription { commentAdded { ${field} } }`;
    client.send({ id, type: 'subscribe', payload: { query } });
  };
  for (const [id, field] of Object.entries({ a: 'id', b: 'content', c: 'id', d: 'postId' })) {
    subscribe(id, field);
  }
  const refused = await client.next();
  assert.deepEqual([refused.type, refused.id], ['error', 'd']);
  const [first] = (await (await server.fetch('/posts')).json()) as { readonly id: string }[];
  await server.send('POST', `/posts/${first?.id ?? ''}/comments`, { content: 'x' });
  const told = [await client.next(), await client.next(), await client.next()];
  assert.deepEqual(new Set(told.map(({ id }) => id)), new Set(['a', 'b', 'c']));
  await client.close();
});
