import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pluck } from '../support/lists.ts';
import { startServer, type TestServer } from '../support/server.ts';

const missing = '00000000-0000-7000-8000-0000000000ff';

async function createPost(server: TestServer, title = 'A post'): Promise<string> {
  const response = await server.send('POST', '/posts', { title, content: 'b' });
  return response.headers.get('location') ?? '';
}

test('POST /posts/{id}/comments: 201, a Location, and an empty array as body', async (t) => {
  const server = await startServer(t);
  const post = await createPost(server);
  const body = { content: 'A comment', id: missing, unknown: 1 };
  const response = await server.send('POST', `${post}/comments`, body);
  assert.equal(response.status, 201);
  assert.match(response.headers.get('location') ?? '', /^\/comments\/[0-9a-f-]{36}$/);
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.equal(await response.text(), '[]');
});

test('GET /posts/{id}/comments: 200, the oldest first (R2, R11)', async (t) => {
  const server = await startServer(t);
  const post = await createPost(server);
  const list = async (): Promise<Record<string, string>[]> => {
    const headers = { Accept: 'application/json' };
    const response = await server.fetch(`${post}/comments`, { headers });
    assert.equal(response.status, 200);
    return (await response.json()) as Record<string, string>[];
  };
  assert.deepEqual(await list(), []);
  for (const content of ['first', 'second', 'third']) {
    await server.send('POST', `${post}/comments`, { content });
  }
  const comments = await list();
  assert.deepEqual(pluck(comments, 'content'), ['first', 'second', 'third']);
  for (const [at, one] of comments.entries())
    assert.deepEqual(Object.keys(one), ['id', 'content', 'createdAt'], `number ${at}`);
});

test('GET /comments/{id}: 200, the comment with a summary of its post (R11)', async (t) => {
  const server = await startServer(t);
  const post = await createPost(server, 'Its title');
  const added = await server.send('POST', `${post}/comments`, { content: 'A comment' });
  const location = added.headers.get('location') ?? '';
  const response = await server.fetch(location);
  assert.equal(response.status, 200);
  const ofPost = { id: post.slice('/posts/'.length), title: 'Its title' };
  const expected = { id: location.slice('/comments/'.length), content: 'A comment', post: ofPost };
  assert.equal(await response.text(), JSON.stringify(expected));
});

test('a missing comment is 404 with a JSON body that has a key error', async (t) => {
  const server = await startServer(t);
  for (const id of [missing, 'x', '__proto__']) {
    const response = await server.fetch(`/comments/${id}`);
    assert.equal(response.status, 404, id);
    assert.match(response.headers.get('content-type') ?? '', /json/, id);
    const { error } = (await response.json()) as { error: unknown };
    assert.ok(typeof error === 'string' && error !== '', id);
  }
});

test('a missing post is 404 before the body is judged (R7)', async (t) => {
  const server = await startServer(t);
  for (const id of [missing, 'x']) {
    assert.equal((await server.fetch(`/posts/${id}/comments`)).status, 404, id);
    for (const [at, body] of ['{"content":"a"}', '{}', 'rubbish', undefined].entries()) {
      const init = body === undefined ? {} : { body };
      const response = await server.fetch(`/posts/${id}/comments`, { method: 'POST', ...init });
      assert.equal(response.status, 404, `body ${at}`);
    }
  }
});

test('a body that is no comment is refused, and nothing is stored', async (t) => {
  const server = await startServer(t);
  const post = await createPost(server);
  for (const [at, body] of [
    {},
    { content: '' },
    { content: ' \n' },
    { content: 1 },
    [],
    null,
  ].entries()) {
    assert.equal((await server.send('POST', `${post}/comments`, body)).status, 422, `body ${at}`);
  }
  assert.deepEqual(await (await server.fetch(`${post}/comments`)).json(), []);
});

test('DELETE /comments/{id}: 204, and it is gone from its post; else 404 or 412 (R37)', async (t) => {
  const server = await startServer(t);
  const post = await createPost(server);
  const made: string[] = [];
  for (const content of ['one', 'two', 'three']) {
    const { headers } = await server.send('POST', `${post}/comments`, { content });
    made.push(headers.get('location') ?? '');
  }
  const remove = (headers: Record<string, string> = {}): Promise<Response> =>
    server.fetch(made[1] ?? '', { method: 'DELETE', headers });
  assert.equal((await remove({ 'If-Match': '"x"' })).status, 412);
  assert.equal((await remove()).status, 204);
  assert.equal((await remove()).status, 404);
  assert.equal((await server.fetch(made[1] ?? '')).status, 404);
  const rest = (await (await server.fetch(`${post}/comments`)).json()) as { content: string }[];
  assert.deepEqual(pluck(rest, 'content'), ['one', 'three']);
});
