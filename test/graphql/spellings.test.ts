/** How clients of other languages write a request, where it has one meaning (Postel). */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { codes, postParts } from '../support/graphql-http.ts';
import { logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { connectByHand, connectReady, subscribe } from '../support/ws-clients.ts';

const query = '{ __typename }';
const answer = { data: { __typename: 'Query' } };

async function ask({ url }: TestServer, body: object, accept = 'application/json') {
  const headers = { 'Content-Type': 'application/json', Accept: accept };
  return fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify(body) });
}
const post = async (server: TestServer, body: object): Promise<unknown> =>
  (await ask(server, body)).json();

const upload = 'mutation ($file: Upload!) { upload(file: $file) }';
const operations = { query: upload, variables: { file: null } };
const map = ['map', { '0': ['variables.file'] }] as const;
const file = (name = '0') => [name, 'text', `${name}.txt`, 'text/plain'] as const;
const done = { data: { upload: true } };

test('what is empty is absent', async (t) => {
  const server = await startServer(t);
  for (const empty of [
    { operationName: '' },
    { variables: [] },
    { extensions: [] },
    { extensions: { persistedQuery: null } },
    { extensions: { persistedQuery: [] } },
    { variables: '' },
    { variables: null, operationName: null, extensions: null },
  ]) {
    const body = { query, ...empty };
    assert.deepEqual(await post(server, body), answer, JSON.stringify(empty));
    const form = await postParts(server, [
      ['operations', body],
      ['map', {}],
    ]);
    assert.deepEqual(form.body, answer, JSON.stringify(empty));
    const asked = new URLSearchParams({ query });
    for (const [name, value] of Object.entries(empty)) {
      if (value !== null)
        asked.set(name, typeof value === 'string' ? value : JSON.stringify(value));
    }
    assert.deepEqual(await (await server.fetch(`/graphql?${asked.toString()}`)).json(), answer);
    for (const [name, type] of [
      ['graphql-transport-ws', 'subscribe'],
      ['graphql-ws', 'start'],
    ] as const) {
      const client = await connectReady(server.port, { protocols: [name] });
      assert.deepEqual((await client.ask({ id: '1', type, payload: body })).payload, answer);
      await client.close();
    }
  }
});

test('a document is named by documentId too, which Relay calls doc_id', async (t) => {
  const server = await startServer(t);
  const sha256 = createHash('sha256').update(query).digest('hex');
  const unknown = await post(server, { documentId: sha256 });
  assert.deepEqual(codes(unknown), ['PERSISTED_QUERY_NOT_FOUND']);
  const extensions = { persistedQuery: { version: 1, sha256Hash: sha256 } };
  assert.deepEqual(await post(server, { query, extensions }), answer);
  for (const name of ['documentId', 'doc_id']) {
    for (const id of [sha256, `sha256:${sha256}`, sha256.toUpperCase()]) {
      assert.deepEqual(await post(server, { [name]: id }), answer, id);
      assert.deepEqual(await (await server.fetch(`/graphql?${name}=${id}`)).json(), answer, id);
    }
    assert.deepEqual(await post(server, { query, [name]: '' }), answer, name);
    assert.equal((await ask(server, { [name]: 7 })).status, 400);
  }
});

test('a file goes where the map says, whatever stands there', async (t) => {
  const server = await startServer(t);
  const send = (variables: object, path: string, text = upload) =>
    postParts(server, [
      ['operations', { query: text, variables }],
      ['map', { '0': [path] }],
      file(),
    ]);
  // Also where the client has left it out, as it is no JSON.
  for (const variables of [null, 'text/plain', {}, [], undefined].map((held) => ({ file: held }))) {
    const { body } = await send(variables, 'variables.file');
    assert.deepEqual(body, done, JSON.stringify(variables));
  }
  assert.equal((await send({}, 'variables.fil')).status, 400);
  const odd = upload.replaceAll('$file', '$__proto__');
  assert.equal((await send({}, 'variables.__proto__', odd)).status, 400);
  assert.equal((await send({ file: {} }, 'variables.file.file')).status, 400);
  assert.equal((await send({ file: 'text' }, 'variables.file.length')).status, 400);
});

test('a form has more than its files, or none and an empty map', async (t) => {
  const server = await startServer(t);
  const send = (...parts: Parameters<typeof postParts>[1]) =>
    postParts(server, [['operations', operations], map, ...parts]);
  assert.deepEqual((await send(file())).body, done);
  assert.deepEqual((await send(['_csrf', 'token'], file())).body, done);
  // What is a file is not lost.
  assert.equal((await send(file(), file('1'))).status, 400);
  for (const none of ['', null]) {
    const { body } = await postParts(server, [
      ['operations', { query }],
      ['map', none],
    ]);
    assert.deepEqual(body, answer, String(none));
  }
});

test('a map may be a list, as PHP writes one with the names 0, 1, …', async (t) => {
  const server = await startServer(t);
  const two = 'mutation ($a: Upload!, $b: Upload!) { a: upload(file: $a) b: upload(file: $b) }';
  const both = { query: two, variables: { a: null, b: null } };
  const send = (list: unknown, name = '1') =>
    postParts(server, [['operations', both], ['map', list], file(), file(name)]);
  const list = [['variables.a'], ['variables.b']];
  assert.deepEqual((await send(list)).body, { data: { a: true, b: true } });
  for (const name of ['2', 'length']) assert.equal((await send(list, name)).status, 400, name);
  for (const bad of ['variables.a', [['variables.a']], 7]) {
    assert.equal((await send(bad)).status, 400, JSON.stringify(bad));
  }
});

test('a socket begins with a payload that is empty, or has the token where clients put it', async (t) => {
  const server = await startServer(t);
  const token = `Bearer ${await logIn(server)}`;
  const init = { type: 'connection_init' };
  for (const protocols of [['graphql-transport-ws'], ['graphql-ws']]) {
    for (const payload of [
      null,
      [],
      '',
      {},
      { Authorization: token },
      { authorization: token },
      { headers: { Authorization: token } },
      { headers: { authorization: token } },
      { headers: 'none', authorization: token },
    ]) {
      const client = await connectByHand(server.port, { protocols });
      assert.deepEqual(await client.ask({ ...init, payload }), { type: 'connection_ack' });
      const { payload: result } = await client.ask(subscribe('1', '{ me { username } }'));
      const me = JSON.stringify(payload).includes(token) ? { username: 'user' } : null;
      assert.deepEqual(result, { data: { me } }, JSON.stringify(payload));
      await client.close();
    }
  }
  for (const payload of ['x', ['x'], 7]) {
    const client = await connectByHand(server.port);
    client.send({ ...init, payload });
    assert.equal((await client.closed).code, 4400, JSON.stringify(payload));
  }
});

test('null of a member that may be null is not given', async (t) => {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  const created = await server.send('POST', '/posts', { title: 'a', content: 'b' });
  const id = created.headers.get('location')?.split('/').at(-1) ?? '';
  const text = `mutation ($id: ID!, $changes: UpdatePostInput!) {
    updatePost(id: $id, changes: $changes) { title content status } }`;
  const update = (changes: object) => post(server, { query: text, variables: { id, changes } });
  const updatePost = { title: 'A', content: 'b', status: 'PUBLISHED' };
  for (const changes of [{ title: null, content: null, status: 'PUBLISHED' }, { title: null }]) {
    assert.deepEqual(await update(changes), { data: { updatePost } });
  }
  assert.deepEqual(codes(await update({ title: ' ' })), ['BAD_USER_INPUT']);
});

test('a subscription is a stream wherever events are acceptable', async (t) => {
  const server = await startServer(t);
  const subscription = { query: 'subscription { commentAdded { id } }' };
  for (const accept of [
    'application/json, text/event-stream;q=0.5',
    'application/graphql-response+json, application/json;q=0.9, Text/Event-Stream;q=0.1',
    'application/json, text/*;q=0.2',
  ]) {
    for (const [body, type] of [
      [subscription, /^text\/event-stream/],
      [{ query }, /json/],
    ] as const) {
      const response = await ask(server, body, accept);
      assert.match(response.headers.get('content-type') ?? '', type, accept);
      await response.body?.cancel();
    }
  }
  for (const accept of ['text/event-stream, application/json', '*/*, text/event-stream']) {
    const response = await ask(server, { query }, accept);
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/, accept);
    await response.body?.cancel();
  }
  for (const accept of ['application/json', 'application/json, text/event-stream;q=0']) {
    assert.equal((await ask(server, subscription, accept)).status, 400, accept);
  }
});

test('a multipart query needs no token that others do not, and refusals are GraphQL errors', async (t) => {
  const server = await startServer(t, { env: { REQUIRE_AUTH: 'writes' } });
  const asked = await postParts(server, [
    ['operations', { query }],
    ['map', {}],
  ]);
  assert.deepEqual([asked.status, asked.body], [200, answer]);
  const parts = [['operations', operations], map, file()] as const;
  for (const headers of [{}, { Authorization: 'Bearer x' }]) {
    const refused = await postParts(server, parts, { ...headers });
    assert.deepEqual([refused.status, codes(refused.body)], [401, ['UNAUTHENTICATED']]);
  }
  assert.equal((await server.fetch('/api/multiparts/0.txt')).status, 404);
  const headers = { Authorization: `Bearer ${await logIn(server)}` };
  assert.deepEqual((await postParts(server, parts, headers)).body, done);
});
