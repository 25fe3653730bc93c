import assert from 'node:assert/strict';
import test from 'node:test';
import { startServer } from '../support/server.js';

test('PATCH /posts/{id}: a merge patch changes title, content and status alone (R37)', async (t) => {
  const server = await startServer(t);
  const created = await server.send('POST', '/posts', { title: 'a', content: 'b' });
  const path = created.headers.get('location') ?? '';
  const type = 'application/merge-patch+json';
  const patch = (body: unknown, headers: Record<string, string> = {}): Promise<Response> => {
    const init = { method: 'PATCH', headers: { 'Content-Type': type, ...headers } };
    return server.fetch(path, { ...init, body: JSON.stringify(body) });
  };
  const read = async (): Promise<Record<string, unknown>> =>
    (await (await server.fetch(path)).json()) as Record<string, unknown>;
  const before = await read();
  assert.equal((await patch({ status: 'PUBLISHED', id: 'x', other: null })).status, 204);
  assert.deepEqual(await read(), { ...before, status: 'PUBLISHED' });
  assert.equal((await patch({ title: 'c' })).status, 204);
  assert.equal((await patch({})).status, 204);
  await server.send('PUT', path, { title: 'd', content: 'e' });
  const after = { ...before, status: 'PUBLISHED', title: 'd', content: 'e' };
  assert.deepEqual(await read(), after);
  for (const body of [{ title: null }, { title: ' ' }, { content: 1 }, { status: 'OUT' }, []]) {
    assert.equal((await patch(body)).status, 422, JSON.stringify(body));
  }
  assert.equal((await patch({ status: null })).status, 422);
  assert.equal((await patch({ title: 'x' }, { 'If-Match': '"x"' })).status, 412);
  const json = await patch({ title: 'x' }, { 'Content-Type': 'application/json' });
  assert.deepEqual([json.status, json.headers.get('accept-patch')], [415, type]);
  assert.deepEqual(await read(), after);
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
