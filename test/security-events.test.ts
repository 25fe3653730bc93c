/** What is logged for the sake of security, whatever LOG_REQUESTS says. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRaw } from './support/raw-client.js';
import { type LogRecord, startServer, type TestServer } from './support/server.js';

const none = { LOG_REQUESTS: 'none' };
const client = '127.0.0.1';

function warningsOf(server: TestServer): readonly LogRecord[] {
  return server.logged.filter(({ level }) => level === 'warn');
}

test('a failed login names the account, if there is one, and no password', async (t) => {
  const server = await startServer(t, { env: { ...none, LOGIN_FAILURES_MAX: '5' } });
  const login = (username: string, password = 'hunter2'): Promise<Response> =>
    server.send('POST', '/auth/login', { username, password });
  for (let count = 0; count < 5; count += 1) await login('user');
  assert.equal((await login('user')).status, 429);
  await login('my-password-by-mistake');
  await login('admin', 'password');
  const failed = { level: 'warn', event: 'login failed', client };
  assert.deepEqual(warningsOf(server), [
    { ...failed, account: 'user', count: 1 },
    { ...failed, account: 'user', count: 2 },
    { ...failed, account: 'user', count: 4 },
    { level: 'warn', event: 'login refused', client, count: 1 },
    { ...failed, account: undefined, count: 1 },
  ]);
  assert.doesNotMatch(JSON.stringify(server.logged), /hunter2|by-mistake|eyJ/);
});

test('a form or a socket of a foreign page is told of with its origin', async (t) => {
  const server = await startServer(t, { env: none });
  const origin = 'https://evil.example';
  const form = new FormData();
  form.append('part', new Blob(['x']), 'a');
  const path = '/api/multiparts/simple';
  const init = { method: 'POST', body: form, headers: { Origin: origin } };
  assert.equal((await server.fetch(path, init)).status, 403);
  const socket = await connectRaw(t, server.port);
  const upgrade = ['GET /graphql HTTP/1.1', 'Host: a', `Origin: ${origin}`, 'Upgrade: websocket'];
  socket.send([...upgrade, 'Connection: Upgrade', '', ''].join('\r\n'));
  assert.equal((await socket.response()).status, 403);
  // What the origin was compared with shows whether a proxy changes it.
  const refused = { level: 'warn', event: 'origin refused', client, origin, count: 1 };
  assert.deepEqual(warningsOf(server), [
    { ...refused, host: `127.0.0.1:${server.port}` },
    { ...refused, host: 'a' },
  ]);
});

test('a full store is told of by the reason, over GraphQL too', async (t) => {
  const env = { LOG_REQUESTS: 'errors', MEMORY_STORE_BYTES_MAX: '1048576' };
  const server = await startServer(t, { env });
  const post = { title: 'a', content: 'x'.repeat(600_000) };
  assert.equal((await server.send('POST', '/posts', post)).status, 507);
  const [line] = warningsOf(server);
  const reason = line?.['reason'];
  assert.deepEqual([line?.event, line?.['code']], ['request', 'storage_full']);
  assert.equal(typeof reason, 'string');
  const query = 'mutation($post: CreatePostInput!) { createPost(createPostInput: $post) }';
  const response = await server.send('POST', '/graphql', { query, variables: { post } });
  assert.equal(response.status, 200);
  const full = server.logged.find(({ event }) => event === 'storage full');
  assert.deepEqual([full?.level, full?.['reason']], ['warn', reason]);
});
