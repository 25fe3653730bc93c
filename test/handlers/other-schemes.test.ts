/** Credentials that are not for this service. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../support/server.ts';

test('another scheme than Bearer counts as none where no token is needed (R23)', async (t) => {
  const server = await startServer(t);
  const send = (path: string, body: object, headers: object): Promise<Response> =>
    server.fetch(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', ...headers },
    });
  const proxied = { Authorization: 'Basic dXNlcjpwYXNzd29yZA==' };
  for (const [path, body] of [
    ['/posts', { title: 'a', content: 'b' }],
    ['/api/todos', { title: 'a' }],
    [
      '/graphql',
      { query: 'mutation { createPost(createPostInput: {title: "a", content: "b"}) { id } }' },
    ],
  ] as const) {
    const response = await send(path, body, proxied);
    assert.ok(response.ok, `${path} ${await response.text()}`);
    const keyed = { ...proxied, 'Idempotency-Key': path };
    assert.ok((await send(path, body, keyed)).ok, path);
  }
  assert.equal((await send('/posts', {}, { Authorization: 'Bearer x' })).status, 401);
  assert.equal((await server.fetch('/profile', { headers: proxied })).status, 401);
});
