import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../support/server.js';

test('GET /hello: a plain text that begins with Hello (R32)', async (t) => {
  const server = await startServer(t);
  const response = await server.fetch('/hello?anything=%zz');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
  const text = await response.text();
  assert.match(text, /^Hello/);
  assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(response.headers.get('x-powered-by'), null);
});

test('every response has a request id of its own', async (t) => {
  const server = await startServer(t);
  const ids = new Set<string | null>();
  for (const path of ['/hello', '/hello', '/nowhere', '/posts']) {
    ids.add((await server.fetch(path)).headers.get('x-request-id'));
  }
  assert.equal(ids.size, 4);
  assert.ok(!ids.has(null));
});
