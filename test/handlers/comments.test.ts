import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pluck } from '../support/lists.ts';
import { startServer } from '../support/server.ts';

const missing = '00000000-0000-7000-8000-0000000000ff';

test('POST and GET of comments: the oldest first, one with its post (R2, R11)', async (t) => {
  const server = await startServer(t);
  const post = await server.make('/posts', { title: 'Its title', content: 'b' });
  const path = `${post}/comments`;
  assert.deepEqual(await server.read(path), []);
  const body = { content: 'first', id: missing, unknown: 1 };
  const response = await server.send('POST', path, body);
  assert.deepEqual([response.status, await response.text()], [201, '[]']);
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  const location = response.headers.get('location') ?? '';
  assert.match(location, /^\/comments\/[0-9a-f-]{36}$/);
  for (const content of ['second', 'third']) await server.make(path, { content });
  const comments = await server.read<Record<string, string>[]>(path);
  assert.deepEqual(pluck(comments, 'content'), ['first', 'second', 'third']);
  for (const one of comments) assert.deepEqual(Object.keys(one), ['id', 'content', 'createdAt']);
  const ofPost = { id: post.slice('/posts/'.length), title: 'Its title' };
  const expected = { id: location.slice('/comments/'.length), content: 'first', post: ofPost };
  assert.equal(await (await server.fetch(location)).text(), JSON.stringify(expected));
});

test('a missing comment is 404, and a missing post too before the body is judged (R7)', async (t) => {
  const server = await startServer(t);
  for (const id of [missing, 'x', '__proto__']) {
    const response = await server.fetch(`/comments/${id}`);
    assert.equal(response.status, 404, id);
    assert.match(response.headers.get('content-type') ?? '', /json/, id);
    const { error } = (await response.json()) as { error: unknown };
    assert.ok(typeof error === 'string' && error !== '', id);
    const path = `/posts/${id}/comments`;
    assert.equal((await server.fetch(path)).status, 404, id);
    for (const body of ['{"content":"a"}', '{}', 'rubbish', null]) {
      assert.equal((await server.fetch(path, { method: 'POST', body })).status, 404, `${body}`);
    }
  }
});

test('a body that is no comment is refused, and nothing is stored', async (t) => {
  const server = await startServer(t);
  const path = `${await server.make('/posts', { title: 'a', content: 'b' })}/comments`;
  for (const body of [{}, { content: '' }, { content: ' \n' }, { content: 1 }, [], null]) {
    assert.equal((await server.send('POST', path, body)).status, 422, JSON.stringify(body));
  }
  assert.deepEqual(await server.read(path), []);
});

test('DELETE /comments/{id}: 204, and it is gone from its post; else 404 or 412 (R37)', async (t) => {
  const server = await startServer(t);
  const path = `${await server.make('/posts', { title: 'a', content: 'b' })}/comments`;
  const made: string[] = [];
  for (const content of ['one', 'two', 'three']) made.push(await server.make(path, { content }));
  const remove = async (headers: Record<string, string> = {}): Promise<number> =>
    (await server.fetch(made[1] ?? '', { method: 'DELETE', headers })).status;
  assert.equal(await remove({ 'If-Match': '"x"' }), 412);
  assert.equal(await remove(), 204);
  assert.equal(await remove(), 404);
  assert.equal((await server.fetch(made[1] ?? '')).status, 404);
  const rest = await server.read<{ content: string }[]>(path);
  assert.deepEqual(pluck(rest, 'content'), ['one', 'three']);
});
