/** GraphQL over HTTP through real sockets (Spec §4.1, R23 to R27). */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { codes, get, post } from '../support/graphql-http.ts';
import { times } from '../support/lists.ts';
import { logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';

const json = 'application/json; charset=utf-8';
const modern = 'application/graphql-response+json';
const titles = '{ allPosts { title } }';
const createPost = 'mutation ($input: CreatePostInput!) { createPost(createPostInput: $input) }';

const start = (context: TestContext, env: Record<string, string> = {}): Promise<TestServer> =>
  startServer(context, { env });

test('the query of the specification is answered', async (context) => {
  const server = await start(context);
  const query = '{ allPosts { id title createdAt author { name } comments { content } } }';
  const { status, type, body } = await post(server, { query });
  assert.equal(status, 200);
  assert.equal(type, json);
  const { data } = body as { data: { allPosts: Record<string, unknown>[] } };
  assert.equal(data.allPosts.length, 3);
  const { title, createdAt, author } = data.allPosts[2] ?? {};
  assert.deepEqual([title, author], ['HELLO, WORLD', { name: 'Ada Lovelace' }]);
  assert.match(String(createdAt), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
});

test('the account of a token is the author, a bad token is refused', async (context) => {
  const server = await start(context);
  const token = await logIn(server);
  const request = { query: createPost, variables: { input: { title: 'a', content: 'b' } } };
  const made = await post(server, request, { Authorization: `Bearer ${token}` });
  const { createPost: postId } = (made.body as { data: { createPost: string } }).data;
  const query = 'query ($postId: String!) { postById(postId: $postId) { author { name } } }';
  const { body } = await post(server, { query, variables: { postId } });
  assert.deepEqual(body, { data: { postById: { author: { name: 'user' } } } });

  const bad = { Authorization: `Bearer ${token}x` };
  assert.deepEqual(codes((await post(server, request, bad)).body), ['UNAUTHENTICATED']);
  assert.deepEqual(codes((await post(server, { query: titles }, bad)).body), []);
});

test('what is refused: 200 as application/json, its own status as the newer type', async (context) => {
  const server = await start(context, { GRAPHQL_OBJECTS_MAX: '100' });
  for (const [query, status, code] of [
    ['{', 400, 'GRAPHQL_PARSE_FAILED'],
    ['{ nothing }', 400, 'GRAPHQL_VALIDATION_FAILED'],
    [
      `{${times(50)
        .map((at) => `a${at}: allPosts { id }`)
        .join(' ')}}`,
      413,
      'PAYLOAD_TOO_LARGE',
    ],
  ] as const) {
    await context.test(query, async () => {
      const older = await post(server, { query });
      assert.deepEqual([older.status, older.type, ...codes(older.body)], [200, json, code], query);
      const newer = await post(server, { query }, { Accept: modern });
      assert.deepEqual([newer.status, newer.type], [status, `${modern}; charset=utf-8`], query);
      assert.deepEqual(codes(newer.body), [code], query);
    });
  }
});

test('what is no GraphQL request: 400 under both types', async (context) => {
  const server = await start(context);
  const more = '"variables":["x"] "variables":"x" "operationName":5 "extensions":1 "__proto__":{}';
  const none = '{ 5 null "x" {} {"query":5} {"query":null} {"variables":{}}';
  const bodies = [
    '',
    ...none.split(' '),
    ...more.split(' ').map((member) => `{"query":"{ allPosts { id } }",${member}}`),
  ];
  for (const body of bodies) {
    for (const accept of ['application/json', modern]) {
      const response = await post(server, body, { Accept: accept });
      assert.equal(response.status, 400, body);
      assert.deepEqual(codes(response.body), ['BAD_USER_INPUT'], body);
    }
  }
});

test('a GET runs queries, and no mutations', async (context) => {
  const server = await start(context, { DEMO_DATA: 'false' });
  const found = await get(server, { query: titles });
  assert.deepEqual([found.status, found.body], [200, { data: { allPosts: [] } }]);
  const query =
    'query A($id: String!) { postById(postId: $id) { id } } query B { allPosts { id } }';
  const named = await get(server, { query, operationName: 'A', variables: '{"id":"x"}' });
  assert.deepEqual(named.body, { data: { postById: null } });

  const input = { title: 'a', content: 'b' };
  const refused = await get(server, { query: createPost, variables: JSON.stringify({ input }) });
  assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'POST']);
  assert.deepEqual((await get(server, { query: titles })).body, { data: { allPosts: [] } });
});

test('a GET with bad parameters is 400, with an Accept that fails 406', async (context) => {
  const server = await start(context);
  for (const bad of [{}, { query: titles, variables: '{' }, { query: titles, variables: '5' }]) {
    assert.equal((await get(server, bad)).status, 400, JSON.stringify(bad));
  }
  const twice = await server.fetch(`/graphql?query={a}&query={b}`);
  assert.equal(twice.status, 400);
  await twice.text();
  assert.equal((await get(server, { query: titles }, 'image/png')).status, 406);
  assert.equal((await post(server, { query: titles }, { Accept: 'image/png' })).status, 200);
});

test('every response to a GET says that it depends on Accept, each time', async (context) => {
  const server = await start(context);
  const types = ['application/json', 'application/graphql-response+json', 'text/event-stream'];
  for (const accept of [...types, ...types, 'image/png']) {
    for (const query of [titles, '{ nothing }', '{']) {
      const headers = { Accept: accept };
      const target = `/graphql?query=${encodeURIComponent(query)}`;
      const response = await server.fetch(target, { headers });
      assert.equal(response.headers.get('vary'), 'Accept', accept);
      await response.text();
      const head = await server.fetch(target, { method: 'HEAD', headers });
      assert.equal(head.headers.get('vary'), 'Accept', accept);
    }
  }
});

test('a subscription sent as plain JSON is told where to go', async (context) => {
  const server = await start(context);
  const { status, body } = await post(server, { query: 'subscription { commentAdded { id } }' });
  assert.equal(status, 400);
  assert.match(JSON.stringify(body), /WebSocket/);
});

test('a batch is answered in order, one operation after the other', async (context) => {
  const server = await start(context, { DEMO_DATA: 'false' });
  const input = { title: 'First', content: 'text' };
  const { status, body } = await post(server, [
    { query: titles },
    { query: createPost, variables: { input } },
    { query: titles },
    { query: '{' },
    5,
    { query: 'subscription { commentAdded { id } }' },
    { query: titles },
  ]);
  assert.equal(status, 200);
  const results = body as { data?: Record<string, unknown> }[];
  const after = { data: { allPosts: [{ title: 'FIRST' }] } };
  assert.deepEqual(results[0], { data: { allPosts: [] } });
  assert.match(String(results[1]?.data?.['createPost']), /^[0-9a-f-]{36}$/);
  assert.deepEqual(results[2], after);
  assert.deepEqual(codes(results[3]), ['GRAPHQL_PARSE_FAILED']);
  assert.deepEqual(codes(results[4]), ['BAD_USER_INPUT']);
  assert.deepEqual(codes(results[5]), ['BAD_USER_INPUT']);
  assert.deepEqual(results[6], after);
});

test('an empty batch is 400, one beyond the limit 413, and neither runs', async (context) => {
  const server = await start(context, { DEMO_DATA: 'false' });
  assert.equal((await post(server, [])).status, 400);
  const one = { query: createPost, variables: { input: { title: 'a', content: 'b' } } };
  const batchOf = async (count: number) => {
    const batch = times(count).map(() => one);
    return post(server, batch);
  };
  assert.equal((await batchOf(21)).status, 413);
  assert.deepEqual((await post(server, { query: titles })).body, { data: { allPosts: [] } });
  assert.equal(((await batchOf(20)).body as unknown[]).length, 20);
});

test('a batch shares one budget; a refused operation is told in its place', async (context) => {
  const server = await start(context, { GRAPHQL_OBJECTS_MAX: '100' });
  const query = '{ allPosts { comments { id } author { id } } }';
  const batch = times(20).map(() => ({ query }));
  const { body } = await post(server, batch);
  const refused = (body as unknown[]).map((result) => codes(result)[0]);
  assert.equal(refused[0], undefined);
  assert.equal(refused.at(-1), 'PAYLOAD_TOO_LARGE');
  const single = await post(server, { query }, { Accept: modern });
  assert.equal(single.status, 200);
});

test('the schema is served as a file, with its directive and an ETag', async (context) => {
  const server = await start(context);
  const ask = (headers: Record<string, string>): Promise<Response> =>
    server.fetch('/graphql/schema.graphql', { headers });
  const response = await ask({});
  const text = await response.text();
  assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
  assert.match(text, /title: String! @uppercase/);
  const etag = response.headers.get('etag') ?? '';
  for (const value of [etag, `"x", W/${etag}`, '*']) {
    const same = await ask({ 'If-None-Match': value });
    assert.deepEqual([same.status, await same.text()], [304, ''], value);
  }
  const again = await ask({ 'If-None-Match': '"x"', Accept: 'application/graphql' });
  assert.equal(again.status, 200);
  assert.equal(again.headers.get('content-type'), 'application/graphql; charset=utf-8');
  assert.equal(await again.text(), text);
  assert.equal((await ask({ Accept: 'image/png' })).status, 406);
});

test('a manifest of trusted documents is read at the start', async (context) => {
  const first = await start(context);
  const path = join(first.folder, 'manifest.json');
  await writeFile(path, JSON.stringify({ titles }));
  const server = await start(context, { TRUSTED_DOCUMENTS: path });
  assert.equal(codes((await post(server, { query: titles })).body).length, 0);
  const persistedQuery = { version: 1, sha256Hash: 'titles' };
  assert.equal(codes((await post(server, { extensions: { persistedQuery } })).body).length, 0);
  const other = await post(server, { query: '{ allPosts { id } }' });
  assert.deepEqual(codes(other.body), ['BAD_USER_INPUT']);
  const missing = { TRUSTED_DOCUMENTS: join(first.folder, 'none') };
  await assert.rejects(start(context, missing), /TRUSTED_/);
});
