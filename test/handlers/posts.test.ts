import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pluck, times } from '../support/lists.ts';
import { type Sent, startServer } from '../support/server.ts';

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const missing = '00000000-0000-7000-8000-0000000000ff';
const texts = { title: 'A title', content: 'A content' };

interface Problem {
  readonly code: string;
  readonly errors?: readonly { readonly pointer: string }[];
}

test('GET /posts: 200, an array of posts, the newest first (R2, R3, R11)', async (t) => {
  const server = await startServer(t);
  await server.make('/posts', { title: 'newest', content: 'b' });
  const response = await server.fetch('/posts');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.ok(response.headers.get('content-length'));
  const posts = (await response.json()) as Record<string, string>[];
  assert.deepEqual([posts.length, posts[0]?.['title']], [4, 'newest']);
  for (const { title } of posts.slice(1)) assert.match(title ?? '', /^Hello/);
  for (const post of posts) {
    assert.deepEqual(Object.keys(post), ['id', 'title', 'content', 'status', 'createdAt']);
    assert.match(post['createdAt'] ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?$/);
  }
});

test('POST and PUT of a post: what is given, and nothing else (R4, R11, R12)', async (t) => {
  const server = await startServer(t, { now: () => new Date('2026-02-03T04:05:06.789Z') });
  const ignored = { status: 'PUBLISHED', id: missing, unknown: 1 };
  const response = await server.send('POST', '/posts', { ...texts, ...ignored });
  assert.deepEqual([response.status, await response.text()], [201, '']);
  const location = response.headers.get('location') ?? '';
  assert.match(location, new RegExp(`^/posts/${uuid}$`));
  const { createdAt, ...post } = await server.read<Record<string, string>>(location);
  assert.deepEqual(post, { id: location.slice('/posts/'.length), ...texts, status: 'DRAFT' });
  assert.match(createdAt ?? '', /^2026-02-0\dT\d\d:\d\d:06\.789$/);
  const upper = location.toUpperCase().replace('/POSTS', '/posts');
  assert.deepEqual(await server.read(upper), { ...post, createdAt });
  const changed = { title: 'after', content: 'new' };
  const put = await server.send('PUT', location, { ...changed, createdAt: '2020-01-01T00:00:00' });
  const length = put.headers.get('content-length');
  assert.deepEqual([put.status, length, await put.text()], [204, null, '']);
  assert.deepEqual(await server.read(location), { ...post, ...changed, createdAt });
});

test('PATCH /posts/{id}: a merge patch changes title, content and status alone (R37)', async (t) => {
  const server = await startServer(t);
  const path = await server.make('/posts', texts);
  const type = 'application/merge-patch+json';
  const patch = (body: unknown, headers: Sent = {}): Promise<Response> =>
    server.send('PATCH', path, body, { 'Content-Type': type, ...headers });
  const before = await server.read<object>(path);
  assert.equal((await patch({ status: 'PUBLISHED', id: 'x', other: null })).status, 204);
  assert.deepEqual(await server.read(path), { ...before, status: 'PUBLISHED' });
  for (const body of [{ title: 'c' }, {}]) assert.equal((await patch(body)).status, 204);
  // PUT takes the status of a whole record (R8).
  const put = async (status?: string): Promise<number> =>
    (await server.send('PUT', path, { title: 'd', content: 'e', status })).status;
  assert.equal(await put('x'), 422);
  assert.equal(await put('DRAFT'), 204);
  assert.deepEqual(await server.read(path), { ...before, title: 'd', content: 'e' });
  assert.equal(await put('PUBLISHED'), 204);
  assert.equal(await put(), 204);
  const after = { ...before, status: 'PUBLISHED', title: 'd', content: 'e' };
  assert.deepEqual(await server.read(path), after);
  const wrong = [{ title: null }, { title: ' ' }, { content: 1 }, { status: 'OUT' }, []];
  for (const body of [...wrong, { status: null }]) {
    assert.equal((await patch(body)).status, 422, JSON.stringify(body));
  }
  assert.equal((await patch({ title: 'x' }, { 'If-Match': '"x"' })).status, 412);
  const json = await patch({ title: 'x' }, { 'Content-Type': 'application/json' });
  assert.deepEqual([json.status, json.headers.get('accept-patch')], [415, type]);
  assert.deepEqual(await server.read(path), after);
  const tag = { 'If-Match': (await server.fetch(path)).headers.get('etag') ?? '' };
  const both = await Promise.all([patch({ status: 'DRAFT' }, tag), patch({ title: 'f' }, tag)]);
  assert.deepEqual(new Set(pluck(both, 'status')), new Set([204, 412]));
  await server.fetch(path, { method: 'DELETE' });
  assert.equal((await patch({ title: 'x' })).status, 404);
});

test('a post that does not exist, or does no more, is 404 for every method (R7)', async (t) => {
  const server = await startServer(t);
  const location = await server.make('/posts', texts);
  const comment = await server.make(`${location}/comments`, { content: 'c' });
  assert.equal((await server.fetch(location, { method: 'DELETE' })).status, 204);
  for (const path of [`${location}/comments`, comment]) {
    assert.equal((await server.fetch(path)).status, 404, path);
  }
  const short = missing.slice(1);
  const gone = location.slice('/posts/'.length);
  const ids = [
    gone,
    missing,
    `${missing}0`,
    `{${missing}}`,
    short,
    `%20${short}`,
    'a'.repeat(3_000),
  ];
  ids.push(missing.replace('f', 'g'), missing.replaceAll('-', ''));
  for (const id of [...ids, ...'x 1 %00 __proto__ ..%2f %F0%9F%98%80'.split(' ')]) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const response = await (method === 'PUT'
        ? server.send(method, `/posts/${id}`, texts)
        : server.fetch(`/posts/${id}`, { method }));
      assert.equal(response.status, 404, `${method} ${id}`);
      assert.equal(((await response.json()) as Problem).code, 'not_found', method);
    }
  }
});

test('a body that is no post is 422 with a pointer for every fault, and changes nothing', async (t) => {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  const location = await server.make('/posts', texts);
  const before = await server.read('/posts');
  for (const [body, pointers] of [
    [{}, '/title /content'],
    [{ title: 1, content: null }, '/title /content'],
    [{ title: '', content: 'b' }, '/title'],
    [{ title: 'a', content: ' \t\n\u00a0\u2003\u3000\ufeff' }, '/content'],
    [{ title: ['a'], content: { b: 1 } }, '/title /content'],
    ...[[], null, 'text', 1].map((value) => [value, ''] as const),
  ] as const) {
    for (const [method, path] of [
      ['POST', '/posts'],
      ['PUT', location],
    ] as const) {
      const response = await server.send(method, path, body);
      const { code, errors = [] } = (await response.json()) as Problem;
      const found = [response.status, code, pluck(errors, 'pointer').join(' ')];
      assert.deepEqual(found, [422, 'invalid_body', pointers], `${method} ${JSON.stringify(body)}`);
    }
  }
  assert.deepEqual(await server.read('/posts'), before);
});

test('without a bound of its own the store takes a fifth of what the process may hold', async (t) => {
  const server = await startServer(t, { memoryBytes: 60 * 1_048_576 });
  // Each counts a mebibyte and a little more.
  const body = { title: 'a', content: 'x'.repeat(524_288) };
  for (const _ of times(11)) await server.make('/posts', body);
  assert.equal((await server.send('POST', '/posts', body)).status, 507);
});

test('a full store refuses with 507 and keeps what it has', async (t) => {
  const server = await startServer(t, { env: { MEMORY_STORE_BYTES_MAX: '1048576' } });
  const location = await server.make('/posts', { title: 'a', content: 'x'.repeat(400_000) });
  const body = { title: 'b', content: 'y'.repeat(200_000) };
  const response = await server.send('POST', '/posts', body);
  assert.equal(response.status, 507);
  assert.equal(((await response.json()) as Problem).code, 'storage_full');
  const text = JSON.stringify(body.content);
  const query = `mutation { createPost(createPostInput: { title: "b", content: ${text} }) }`;
  for (const [Accept, status] of [
    ['application/json', 200],
    ['application/graphql-response+json', 507],
  ] as const) {
    const refused = await server.send('POST', '/graphql', { query }, { Accept });
    assert.equal(refused.status, status);
    assert.match(await refused.text(), /^\{"errors":.*"STORAGE_FULL"\}/);
  }
  assert.equal((await server.fetch(location, { method: 'DELETE' })).status, 204);
  await server.make('/posts', body);
});
