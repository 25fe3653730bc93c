/** Limits that no other test crosses by their setting. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonPatch, mergePatch, saidBy, start } from './support/articles.ts';
import { post } from './support/graphql-http.ts';
import { runProgram } from './support/program.ts';
import { startServer } from './support/server.ts';
import { until } from './support/until.ts';
import { keepOthersServed } from './support/prober.ts';

keepOthersServed();

test('more than 200 lines of the log in a second are counted, not written', async (t) => {
  const program = await runProgram(t);
  const { port } = await program.listening();
  const list = `http://127.0.0.1:${port}/api/multiparts/list`;
  /** Each file is a line. */
  const send = async (files: number): Promise<void> => {
    const form = new FormData();
    for (let number = 0; number < files; number += 1)
      form.append(`${number}`, new Blob(['x']), `${number}`);
    assert.equal((await fetch(list, { method: 'POST', body: form })).status, 200);
  };
  // The line about what was dropped comes with the first of a later second.
  let looks = 0;
  await until('a line about dropped lines', async () => {
    await Promise.all((looks % 20 === 0 ? [200, 200, 200] : [1]).map(send));
    looks += 1;
    return program.output().includes('log lines dropped');
  });
  const seconds = new Map<string, number>();
  for (const line of program.output().trimEnd().split('\n')) {
    const { time, event } = JSON.parse(line) as { readonly time: string; readonly event: string };
    // Who did what has no limit (R53).
    if (event === 'change') continue;
    const second = time.slice(0, 19);
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  }
  // The line that tells of those that were dropped comes on top.
  for (const count of seconds.values()) assert.ok(count <= 201, `${count} lines`);
});

test('50,000 values of a body are read, more are 413 wherever JSON is sent (R39)', async (t) => {
  const server = await start(t);
  const [{ id }] = await server.read<[{ id: string }]>('/posts');
  const bodies = [
    ['POST', '/posts', { title: 'a', content: 'b' }],
    ['PUT', `/posts/${id}`, { title: 'a', content: 'b' }],
    ['POST', `/posts/${id}/comments`, { content: 'b' }],
    ['POST', '/api/todos', { title: 'a' }],
    ['POST', '/api/articles', { title: 'a' }],
    ['POST', '/auth/login', { username: 'user', password: 'password' }],
    ['POST', '/graphql', { query: '{ __typename }' }],
  ] as const;
  for (const [method, path, body] of bodies) {
    const more = async (count: number): Promise<Response> =>
      server.send(method, path, { ...body, x: Array.from({ length: count }, () => 0) });
    assert.ok((await more(49_900)).ok, path);
    const response = await more(50_000);
    assert.equal(response.status, 413, path);
    assert.match(await response.text(), /more than 50000 values/, path);
  }
  const operations = Array.from({ length: 10_000 }, () => ({ op: 'remove', path: '/x', more: 0 }));
  for (const [type, body] of [
    [jsonPatch, operations],
    [mergePatch, { x: operations }],
  ] as const) {
    const response = await server.patch('/api/articles/1', type, body);
    assert.equal(await saidBy(response), '413 content_too_large', type);
  }
});

test('1,000 operations of a patch are applied, one more is 413', async (t) => {
  const server = await start(t);
  const patch = (count: number): Promise<Response> => {
    const operation = { op: 'add', path: '/tags/-', value: 'x' };
    const operations = Array.from({ length: count }, () => operation);
    return server.patch('/api/articles/1', jsonPatch, operations);
  };
  assert.equal((await patch(1_000)).status, 204);
  assert.match(await saidBy(await patch(1_001)), /^413 /);
  const { tags } = await server.read<{ readonly tags: unknown[] }>('/api/articles/1');
  assert.equal(tags.length, 1_002);
});

test('a result tells of 20 short errors, and that there are more; the log of each code once', async (t) => {
  const server = await startServer(t, { env: { LOG_REQUESTS: 'all' } });
  const errorsOf = async (query: string, i?: unknown) => {
    const { body } = await post(server, { query, variables: { i } });
    const { errors } = body as { readonly errors: readonly { readonly message: string }[] };
    for (const { message } of errors) assert.ok(message.length <= 301, message);
    assert.ok(JSON.stringify(errors).length < 20_000);
    return errors.length;
  };
  assert.equal(await errorsOf('{ a b }'), 2);
  await post(server, [{ query: '{' }, { query: '{' }]);
  await post(server, { query: `query ${'x'.repeat(100)} { __typename }` });
  const lines = server.logged.filter(({ event }) => event === 'request').slice(-2);
  const told = lines.map(({ operation, codes }) => [operation, codes]);
  const name = `query ${'x'.repeat(58)}`;
  assert.deepEqual(told, [
    ['batch of 2', 'GRAPHQL_PARSE_FAILED'],
    [name, undefined],
  ]);
  const unknown = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`k${at}`, 1]));
  const create = 'mutation ($i: CreatePostInput!) { createPost(createPostInput: $i) }';
  const blank = 'createPost(createPostInput: {title: "", content: ""})';
  const blanks = Array.from({ length: 30 }, (_, at) => `a${at}: ${blank}`).join(' ');
  for (const [query, input] of [
    [`{ ${'x '.repeat(500)} }`],
    [`{ ${'x'.repeat(300)} }`],
    [`{ ${'x'.repeat(100_000)} }`],
    [create, { title: 'a', content: 'b', ...unknown }],
    [create, { title: 'x'.repeat(100_000) }],
    [`mutation { ${blanks} }`],
  ] as const) {
    const count = await errorsOf(query, input);
    // One more may say that there are more.
    assert.ok(count > 0 && count <= 21, `${count} of ${query.slice(0, 100)}`);
  }
});
