import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pluck, times } from '../support/lists.ts';
import { startServer, type TestServer } from '../support/server.ts';

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const missing = '00000000-0000-7000-8000-0000000000ff';

interface Problem {
  readonly code: string;
  readonly error: string;
  readonly errors?: readonly { readonly pointer: string }[];
}

async function create(server: TestServer, title: string, content = 'b'): Promise<string> {
  const response = await server.send('POST', '/posts', { title, content });
  assert.equal(response.status, 201);
  return response.headers.get('location') ?? '';
}

async function read(server: TestServer, path: string): Promise<unknown> {
  const response = await server.fetch(path);
  assert.equal(response.status, 200);
  return response.json();
}

test('GET /posts: 200, an array of posts, the newest first (R2, R3, R11)', async (t) => {
  const server = await startServer(t);
  await create(server, 'newest');
  const response = await server.fetch('/posts');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.ok(response.headers.get('content-length'));
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(response.headers.get('x-powered-by'), null);
  const posts = (await response.json()) as Record<string, string>[];
  assert.equal(posts.length, 4);
  assert.equal(posts[0]?.['title'], 'newest');
  for (const [at, post] of posts.entries()) {
    assert.deepEqual(
      Object.keys(post),
      ['id', 'title', 'content', 'status', 'createdAt'],
      `post ${at}`,
    );
    assert.match(post['createdAt'] ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?$/, `post ${at}`);
  }
  for (const [at, post] of posts.slice(1).entries())
    assert.match(post['title'] ?? '', /^Hello/, `post ${at}`);
});

test('POST /posts: 201 with the Location of a draft that can be read (R4, R11, R12)', async (t) => {
  const server = await startServer(t, { now: () => new Date('2026-02-03T04:05:06.789Z') });
  const texts = { title: 'A title', content: 'A content' };
  const ignored = { status: 'PUBLISHED', id: missing, unknown: 1 };
  const response = await server.send('POST', '/posts', { ...texts, ...ignored });
  assert.equal(response.status, 201);
  assert.equal(await response.text(), '');
  const location = response.headers.get('location') ?? '';
  assert.match(location, new RegExp(`^/posts/${uuid}$`));
  const { createdAt, ...post } = (await read(server, location)) as Record<string, string>;
  assert.deepEqual(post, { id: location.slice('/posts/'.length), ...texts, status: 'DRAFT' });
  assert.match(createdAt ?? '', /^2026-02-0\dT\d\d:\d\d:06\.789$/);
  const upper = location.toUpperCase().replace('/POSTS', '/posts');
  assert.deepEqual(await read(server, upper), { ...post, createdAt });
});

test('PUT /posts/{id}: 204, title and content are changed and nothing else', async (t) => {
  const server = await startServer(t);
  const location = await create(server, 'before');
  const before = (await read(server, location)) as object;
  const body = { title: 'after', content: 'new', createdAt: '2020-01-01T00:00:00' };
  const response = await server.send('PUT', location, body);
  assert.equal(response.status, 204);
  assert.equal(response.headers.get('content-length'), null);
  assert.equal(await response.text(), '');
  assert.deepEqual(await read(server, location), { ...before, title: 'after', content: 'new' });
});

test('PATCH /posts/{id}: a merge patch changes title, content and status alone (R37)', async (t) => {
  const server = await startServer(t);
  const path = await create(server, 'a');
  const type = 'application/merge-patch+json';
  const patch = (body: unknown, headers: Record<string, string> = {}): Promise<Response> => {
    const init = { method: 'PATCH', headers: { 'Content-Type': type, ...headers } };
    return server.fetch(path, { ...init, body: JSON.stringify(body) });
  };
  const before = (await read(server, path)) as object;
  assert.equal((await patch({ status: 'PUBLISHED', id: 'x', other: null })).status, 204);
  assert.deepEqual(await read(server, path), { ...before, status: 'PUBLISHED' });
  assert.equal((await patch({ title: 'c' })).status, 204);
  assert.equal((await patch({})).status, 204);
  await server.send('PUT', path, { title: 'd', content: 'e' });
  const after = { ...before, status: 'PUBLISHED', title: 'd', content: 'e' };
  assert.deepEqual(await read(server, path), after);
  for (const body of [{ title: null }, { title: ' ' }, { content: 1 }, { status: 'OUT' }, []]) {
    assert.equal((await patch(body)).status, 422, JSON.stringify(body));
  }
  assert.equal((await patch({ status: null })).status, 422);
  assert.equal((await patch({ title: 'x' }, { 'If-Match': '"x"' })).status, 412);
  const json = await patch({ title: 'x' }, { 'Content-Type': 'application/json' });
  assert.deepEqual([json.status, json.headers.get('accept-patch')], [415, type]);
  assert.deepEqual(await read(server, path), after);
  const tag = (await server.fetch(path)).headers.get('etag') ?? '';
  const both = [
    patch({ status: 'DRAFT' }, { 'If-Match': tag }),
    patch({ title: 'f' }, { 'If-Match': tag }),
  ];
  const statuses = (await Promise.all(both)).map(({ status }) => status);
  assert.deepEqual(new Set(statuses), new Set([204, 412]));
  await server.fetch(path, { method: 'DELETE' });
  assert.equal((await patch({ title: 'x' })).status, 404);
});

test('DELETE /posts/{id}: 204, and its comments are gone with it (R7)', async (t) => {
  const server = await startServer(t);
  const location = await create(server, 'a');
  const added = await server.send('POST', `${location}/comments`, { content: 'c' });
  const comment = added.headers.get('location') ?? '';
  assert.equal((await server.fetch(location, { method: 'DELETE' })).status, 204);
  for (const path of [location, `${location}/comments`, comment]) {
    assert.equal((await server.fetch(path)).status, 404, path);
  }
  assert.equal((await server.fetch(location, { method: 'DELETE' })).status, 404);
});

test('a post that does not exist is 404 for every method, whatever the id looks like', async (t) => {
  const server = await startServer(t);
  const short = missing.slice(1);
  const ids = [missing, `${missing}0`, `{${missing}}`, short, `%20${short}`, 'a'.repeat(3_000)];
  ids.push(missing.replace('f', 'g'), missing.replaceAll('-', ''));
  for (const id of [...ids, ...'x 1 %00 __proto__ ..%2f %F0%9F%98%80'.split(' ')]) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const body = method === 'PUT' ? '{"title":"a","content":"b"}' : null;
      const headers = { 'Content-Type': 'application/json' };
      const response = await server.fetch(`/posts/${id}`, { method, body, headers });
      assert.equal(response.status, 404, `${method} ${id}`);
      assert.equal(((await response.json()) as Problem).code, 'not_found', method);
    }
  }
});

test('a body that is no post is 422 with a pointer for every fault, and changes nothing', async (t) => {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  const location = await create(server, 'kept', 'kept');
  const before = await read(server, '/posts');
  const rows: readonly (readonly [unknown, readonly string[]])[] = [
    [{}, ['/title', '/content']],
    [{ title: 'a' }, ['/content']],
    [{ title: 1, content: null }, ['/title', '/content']],
    [{ title: '', content: 'b' }, ['/title']],
    [{ title: 'a', content: ' \t\n\u00a0\u2003\u3000\ufeff' }, ['/content']],
    [{ title: ['a'], content: { b: 1 } }, ['/title', '/content']],
    ...[[], null, 'text', 1, true].map((body) => [body, ['']] as const),
  ];
  for (const [body, pointers] of rows) {
    await t.test(JSON.stringify(body), async () => {
      for (const [method, path] of [
        ['POST', '/posts'],
        ['PUT', location],
      ] as const) {
        const response = await server.send(method, path, body);
        assert.equal(response.status, 422, method);
        assert.equal(response.headers.get('content-type'), 'application/problem+json', method);
        const problem = (await response.json()) as Problem;
        assert.equal(problem.code, 'invalid_body', method);
        assert.deepEqual(pluck(problem.errors ?? [], 'pointer'), pointers, method);
      }
    });
  }
  assert.deepEqual(await read(server, '/posts'), before);
});

test('without a bound of its own the store takes a fifth of what the process may hold', async (t) => {
  const server = await startServer(t, { memoryBytes: 60 * 1_048_576 });
  // Each counts a mebibyte and a little more.
  const body = { title: 'a', content: 'x'.repeat(524_288) };
  for (const _ of times(11)) {
    assert.equal((await server.send('POST', '/posts', body)).status, 201);
  }
  assert.equal((await server.send('POST', '/posts', body)).status, 507);
});

test('a full store refuses with 507 and keeps what it has', async (t) => {
  const server = await startServer(t, { env: { MEMORY_STORE_BYTES_MAX: '1048576' } });
  const location = await create(server, 'a', 'x'.repeat(400_000));
  const body = { title: 'b', content: 'y'.repeat(200_000) };
  const response = await server.send('POST', '/posts', body);
  assert.equal(response.status, 507);
  assert.equal(((await response.json()) as Problem).code, 'storage_full');
  for (const [type, status] of [
    ['application/json', 200],
    ['application/graphql-response+json', 507],
  ] as const) {
    await t.test(type, async () => {
      const text = JSON.stringify(body.content);
      const query = `mutation { createPost(createPostInput: { title: "b", content: ${text} }) }`;
      const refused = await server.fetch('/graphql', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Accept: type },
        body: JSON.stringify({ query }),
      });
      assert.equal(refused.status, status);
      assert.match(await refused.text(), /^\{"errors":.*"STORAGE_FULL"\}/);
    });
  }
  assert.equal((await server.fetch(location, { method: 'DELETE' })).status, 204);
  assert.equal((await server.send('POST', '/posts', body)).status, 201);
});
