/** What lines of the log say about a request: its trace, its operation, and who changed what. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logIn } from '../support/login.ts';
import { type LogRecord, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const all = { env: { LOG_REQUESTS: 'all' } };

/** The lines of finished requests, once there are so many. */
async function requestsOf(server: Pick<TestServer, 'logged'>, count: number): Promise<LogRecord[]> {
  const lines = (): LogRecord[] => server.logged.filter(({ event }) => event === 'request');
  await until('lines of requests', () => lines().length >= count);
  return lines();
}

test('the trace of a request is on every line with its id, and on no other', async (t) => {
  const server = await startServer(t, all);
  for (const given of [traceparent, '00-short-b7ad6b7169203331-01']) {
    const body = new FormData();
    body.append('part', new Blob(['abc']), 'a.txt');
    const options = { method: 'POST', body, headers: { traceparent: given } };
    assert.equal((await server.fetch('/api/multiparts/simple', options)).status, 200, given);
  }
  await requestsOf(server, 2);
  const trace = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
  const none = [undefined, undefined];
  assert.deepEqual(
    server.logged
      .filter(({ event }) => event === 'request' || event === 'file uploaded')
      .map(({ event, trace_id, span_id }) => [event, trace_id, span_id]),
    [
      ['file uploaded', ...trace],
      ['request', ...trace],
      ['file uploaded', ...none],
      ['request', ...none],
    ],
  );
});

test('the line of a GraphQL request has its operation and its codes', async (t) => {
  const server = await startServer(t, all);
  const ask = (body: unknown) => server.send('POST', '/graphql', body);
  await ask({ query: 'query Posts { allPosts { id } }' });
  await ask({ query: '{ secret }' });
  await ask({ query: `query ${'N'.repeat(90)} { postById(postId: "x") { id } }` });
  await ask([{ query: 'mutation { addComment(commentInput: {postId: "x", content: "c"}) }' }, {}]);
  const lines = await requestsOf(server, 4);
  assert.deepEqual(
    lines.map(({ operation, codes }) => [operation, codes]),
    [
      ['query Posts', undefined],
      [undefined, 'GRAPHQL_VALIDATION_FAILED'],
      [`query ${'N'.repeat(58)}`, undefined],
      ['batch of 2', 'NOT_FOUND BAD_USER_INPUT'],
    ],
  );
});

test('each change by an account is a line, whatever LOG_REQUESTS says; others are none', async (t) => {
  const server = await startServer(t, { env: { LOG_REQUESTS: 'none', REQUIRE_AUTH: 'writes' } });
  const login = await server.send('POST', '/auth/login', {
    username: 'user',
    password: 'password',
  });
  const { access_token: token } = (await login.json()) as { access_token: string };
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const sendAs = (method: string, path: string, body?: unknown) =>
    server.fetch(path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  const { headers: created } = await sendAs('POST', '/posts', { title: 'a', content: 'b' });
  const id = (created.get('location') ?? '').slice('/posts/'.length);
  await sendAs('GET', `/posts/${id}`);
  await sendAs('PUT', `/posts/${id}`, { title: ' ' });
  await server.fetch(`/posts/${id}`, { method: 'DELETE' });
  assert.equal((await sendAs('POST', '/auth/refresh')).status, 200);
  const query = `mutation { addComment(commentInput: {postId: "${id}", content: "c"}) }`;
  const commented = await (await sendAs('POST', '/graphql', { query })).json();
  await sendAs('DELETE', `/posts/${id}`);
  const changes = server.logged.filter(({ event }) => event === 'change');
  assert.deepEqual(
    changes.map(({ account, action, id: changed }) => [account, action, changed]),
    [
      ['user', 'POST /posts', id],
      ['user', 'addComment', (commented as { data: { addComment: string } }).data.addComment],
      ['user', 'DELETE /posts/{id}', id],
    ],
  );
  assert.doesNotMatch(JSON.stringify(changes), new RegExp(token));
});

test('a write that is sent again under its key is one line', async (t) => {
  const server = await startServer(t, { env: { LOG_REQUESTS: 'none' } });
  const headers = {
    'Content-Type': 'application/json',
    Authorization: `Bearer ${await logIn(server)}`,
    'Idempotency-Key': 'a',
  };
  const query = 'mutation { createPost(createPostInput: {title: "a", content: "b"}) }';
  for (const [path, value] of [
    ['/api/todos', { title: 'a' }],
    ['/graphql', { query }],
  ] as const) {
    for (const [at, replayed] of [null, 'true', 'true'].entries()) {
      const sent = { method: 'POST', headers, body: JSON.stringify(value) };
      const response = await server.fetch(path, sent);
      assert.equal(response.headers.get('Idempotency-Replayed'), replayed, `replayed ${at}`);
    }
    headers['Idempotency-Key'] += 'a';
  }
  const changes = server.logged.filter(({ event }) => event === 'change');
  assert.deepEqual(
    changes.map(({ action }) => action),
    ['POST /api/todos', 'createPost'],
  );
});
