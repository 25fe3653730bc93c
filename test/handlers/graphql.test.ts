/** GraphQL over HTTP through real sockets (Spec §4.1, R23 to R27): beside `graphql/audits.test.ts`. */

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
const none = { data: { allPosts: [] } };
const createPost = 'mutation ($input: CreatePostInput!) { createPost(createPostInput: $input) }';
const create = { query: createPost, variables: { input: { title: 'First', content: 'b' } } };

const start = (context: TestContext, env: Record<string, string> = {}): Promise<TestServer> =>
  startServer(context, { env });

test('the query of the specification is answered', async (context) => {
  const server = await start(context);
  const query = '{ allPosts { id title createdAt author { name } comments { content } } }';
  const { status, type, body } = await post(server, { query });
  assert.deepEqual([status, type], [200, json]);
  const { data } = body as { data: { allPosts: Record<string, unknown>[] } };
  assert.equal(data.allPosts.length, 3);
  const { title, createdAt, author } = data.allPosts[2] ?? {};
  assert.deepEqual([title, author], ['HELLO, WORLD', { name: 'Ada Lovelace' }]);
  assert.match(String(createdAt), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
});

test('the account of a token is the author, a bad token is refused', async (context) => {
  const server = await start(context);
  const token = await logIn(server);
  const made = await post(server, create, { Authorization: `Bearer ${token}` });
  const { createPost: postId } = (made.body as { data: { createPost: string } }).data;
  const query = 'query ($postId: String!) { postById(postId: $postId) { author { name } } }';
  const { body } = await post(server, { query, variables: { postId } });
  assert.deepEqual(body, { data: { postById: { author: { name: 'user' } } } });
  const bad = { Authorization: `Bearer ${token}x` };
  assert.deepEqual(codes((await post(server, create, bad)).body), ['UNAUTHENTICATED']);
  assert.deepEqual(codes((await post(server, { query: titles }, bad)).body), []);
});

test('what is refused: 200 as application/json, its own status as the newer type', async (context) => {
  const server = await start(context, { GRAPHQL_OBJECTS_MAX: '100' });
  const many = times(50).map((at) => `a${at}: allPosts { id }`);
  for (const [query, status, code] of [
    ['{', 400, 'GRAPHQL_PARSE_FAILED'],
    ['{ nothing }', 400, 'GRAPHQL_VALIDATION_FAILED'],
    [`{${many.join(' ')}}`, 413, 'PAYLOAD_TOO_LARGE'],
  ] as const) {
    const older = await post(server, { query });
    assert.deepEqual([older.status, older.type, ...codes(older.body)], [200, json, code], query);
    const newer = await post(server, { query }, { Accept: modern });
    assert.deepEqual([newer.status, newer.type], [status, `${modern}; charset=utf-8`], query);
    assert.deepEqual(codes(newer.body), [code], query);
  }
  // What is no request is 400 under both types.
  const members =
    '"variables":["x"] "variables":"x" "operationName":5 "extensions":1 "__proto__":{}';
  const others = ' { 5 null "x" {} {"query":5} {"query":null} {"variables":{}}'.split(' ');
  const more = members.split(' ').map((member) => `{"query":"${titles}",${member}}`);
  for (const body of [...others, ...more]) {
    for (const Accept of ['application/json', modern]) {
      const response = await post(server, body, { Accept });
      assert.deepEqual([response.status, ...codes(response.body)], [400, 'BAD_USER_INPUT'], body);
    }
  }
});

test('a GET runs queries, and no mutations', async (context) => {
  const server = await start(context, { DEMO_DATA: 'false' });
  const found = await get(server, { query: titles });
  assert.deepEqual([found.status, found.body], [200, none]);
  const query =
    'query A($id: String!) { postById(postId: $id) { id } } query B { me { username } }';
  const named = await get(server, { query, operationName: 'A', variables: '{"id":"x"}' });
  assert.deepEqual(named.body, { data: { postById: null } });
  const variables = JSON.stringify(create.variables);
  const refused = await get(server, { query: createPost, variables });
  assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'POST']);
  assert.deepEqual((await get(server, { query: titles })).body, none);
  for (const bad of [{}, { query: titles, variables: '{' }, { query: titles, variables: '5' }]) {
    assert.equal((await get(server, bad)).status, 400, JSON.stringify(bad));
  }
  assert.equal((await server.fetch(`/graphql?query={a}&query={b}`)).status, 400);
  assert.equal((await post(server, { query: titles }, { Accept: 'image/png' })).status, 200);
});

test('every response to a GET says that it depends on Accept, each time', async (context) => {
  const server = await start(context);
  const types = ['application/json', modern, 'text/event-stream'];
  for (const Accept of [...types, ...types, 'image/png']) {
    for (const query of [titles, '{ nothing }', '{']) {
      const target = `/graphql?query=${encodeURIComponent(query)}`;
      for (const method of ['GET', 'HEAD']) {
        const { headers } = await server.fetch(target, { method, headers: { Accept } });
        assert.equal(headers.get('vary'), 'Accept', Accept);
      }
    }
  }
  assert.equal((await get(server, { query: titles }, 'image/png')).status, 406);
});

test('a batch is answered in order, one operation after the other', async (context) => {
  const server = await start(context, { DEMO_DATA: 'false' });
  const subscription = { query: 'subscription { commentAdded { id } }' };
  const batch = [{ query: titles }, create, { query: titles }, { query: '{' }, 5, subscription];
  const { status, body } = await post(server, [...batch, { query: titles }]);
  assert.equal(status, 200);
  const [before, made, second, ...others] = body as { data?: Record<string, unknown> }[];
  const after = { data: { allPosts: [{ title: 'FIRST' }] } };
  assert.deepEqual([before, second, others.pop()], [none, after, after]);
  assert.match(String(made?.data?.['createPost']), /^[0-9a-f-]{36}$/);
  const refused = ['GRAPHQL_PARSE_FAILED', 'BAD_USER_INPUT', 'BAD_USER_INPUT'];
  assert.deepEqual(others.flatMap(codes), refused);
  // Alone it is told where to go.
  const alone = await post(server, subscription);
  assert.equal(alone.status, 400);
  assert.match(JSON.stringify(alone.body), /WebSocket/);
});

test('an empty batch is 400, one beyond the limit 413; a batch shares one budget', async (context) => {
  const server = await start(context, { DEMO_DATA: 'false', GRAPHQL_OBJECTS_MAX: '100' });
  assert.equal((await post(server, [])).status, 400);
  assert.equal(
    (
      await post(
        server,
        times(21).map(() => create),
      )
    ).status,
    413,
  );
  assert.deepEqual((await post(server, { query: titles })).body, none);
  const { body } = await post(
    server,
    times(20).map(() => create),
  );
  assert.deepEqual((body as unknown[]).flatMap(codes), []);
  const query = '{ allPosts(first: 3) { comments { id } author { id } } }';
  const results = await post(
    server,
    times(20).map(() => ({ query })),
  );
  const refused = (results.body as unknown[]).map((result) => codes(result)[0]);
  assert.deepEqual([refused[0], refused.at(-1)], [undefined, 'PAYLOAD_TOO_LARGE']);
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
  assert.equal((await ask({ 'If-None-Match': etag })).status, 304);
  const again = await ask({ 'If-None-Match': '"x"', Accept: 'application/graphql' });
  assert.equal(again.headers.get('content-type'), 'application/graphql; charset=utf-8');
  assert.equal(await again.text(), text);
  assert.equal((await ask({ Accept: 'image/png' })).status, 406);
});

test('a manifest of trusted documents is read at the start', async (context) => {
  const { folder } = await start(context);
  const path = join(folder, 'manifest.json');
  await writeFile(path, JSON.stringify({ titles }));
  const server = await start(context, { TRUSTED_DOCUMENTS: path });
  const persistedQuery = { version: 1, sha256Hash: 'titles' };
  for (const [body, ...expected] of [
    [{ query: titles }],
    [{ extensions: { persistedQuery } }],
    [{ query: '{ allPosts { id } }' }, 'BAD_USER_INPUT'],
  ] as const) {
    assert.deepEqual(codes((await post(server, body)).body), expected);
  }
  const missing = { TRUSTED_DOCUMENTS: join(folder, 'none') };
  await assert.rejects(start(context, missing), /TRUSTED_/);
});
