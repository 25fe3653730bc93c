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
const json = 'application/json';

async function post({ url }: TestServer, body: object, accept = json) {
  const headers = { 'Content-Type': json, Accept: accept };
  return fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify(body) });
}

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
    assert.deepEqual(await (await post(server, body)).json(), answer, JSON.stringify(empty));
    const parts = [
      ['operations', body],
      ['map', {}],
    ] as const;
    assert.deepEqual((await postParts(server, parts)).body, answer, JSON.stringify(empty));
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

test('a document is named by documentId too', async (t) => {
  const server = await startServer(t);
  const sha256 = createHash('sha256').update(query).digest('hex');
  assert.deepEqual(codes(await (await post(server, { documentId: sha256 })).json()), [
    'PERSISTED_QUERY_NOT_FOUND',
  ]);
  const extensions = { persistedQuery: { version: 1, sha256Hash: sha256 } };
  assert.deepEqual(await (await post(server, { query, extensions })).json(), answer);
  for (const documentId of [sha256, `sha256:${sha256}`, sha256.toUpperCase()]) {
    assert.deepEqual(await (await post(server, { documentId })).json(), answer, documentId);
    // Relay calls it `doc_id`.
    assert.deepEqual(await (await post(server, { doc_id: documentId })).json(), answer);
    for (const name of ['documentId', 'doc_id']) {
      const response = await server.fetch(`/graphql?${name}=${documentId}`);
      assert.deepEqual(await response.json(), answer);
    }
  }
  assert.deepEqual(await (await post(server, { query, documentId: '' })).json(), answer);
  for (const name of ['documentId', 'doc_id'])
    assert.equal((await post(server, { [name]: 7 })).status, 400);
});

test('a file goes where the map says, whatever stands there', async (t) => {
  const server = await startServer(t);
  const upload = 'mutation ($file: Upload!) { upload(file: $file) }';
  const send = (variables: object, paths: readonly string[], text = upload) =>
    postParts(server, [
      ['operations', { query: text, variables }],
      ['map', { '0': paths }],
      ['0', 'text', 'a.txt', 'text/plain'],
    ]);
  for (const held of [null, 'text/plain', {}, []]) {
    const { body } = await send({ file: held }, ['variables.file']);
    assert.deepEqual(body, { data: { upload: true } }, JSON.stringify(held));
  }
  // A variable that the client has left out, as it is no JSON.
  assert.deepEqual((await send({}, ['variables.file'])).body, { data: { upload: true } });
  assert.equal((await send({}, ['variables.fil'])).status, 400);
  const odd = upload.replaceAll('$file', '$__proto__');
  assert.equal((await send({}, ['variables.__proto__'], odd)).status, 400);
  assert.equal((await send({ file: {} }, ['variables.file.file'])).status, 400);
  assert.equal((await send({ file: 'text' }, ['variables.file.length'])).status, 400);
});

test('a form has more than its files, or none and an empty map', async (t) => {
  const server = await startServer(t);
  const upload = 'mutation ($file: Upload!) { upload(file: $file) }';
  const operations = { query: upload, variables: { file: null } };
  const file = ['0', 'text', 'a.txt', 'text/plain'] as const;
  const send = (...parts: Parameters<typeof postParts>[1]) =>
    postParts(server, [['operations', operations], ['map', { '0': ['variables.file'] }], ...parts]);
  const done = { data: { upload: true } };
  assert.deepEqual((await send(file)).body, done);
  assert.deepEqual((await send(['_csrf', 'token'], file)).body, done);
  // What is a file is not lost.
  assert.equal((await send(file, ['1', 'text', 'b.txt', 'text/plain'])).status, 400);
  for (const map of ['', null]) {
    const { body } = await postParts(server, [
      ['operations', { query: '{ __typename }' }],
      ['map', map],
    ]);
    assert.deepEqual(body, { data: { __typename: 'Query' } }, String(map));
  }
});

test('a map may be a list, as PHP writes one with the names 0, 1, …', async (t) => {
  const server = await startServer(t);
  const upload = 'mutation ($a: Upload!, $b: Upload!) { a: upload(file: $a) b: upload(file: $b) }';
  const operations = { query: upload, variables: { a: null, b: null } };
  const send = (map: unknown, name = '1') =>
    postParts(server, [
      ['operations', operations],
      ['map', map],
      ['0', 'text', 'a.txt', 'text/plain'],
      [name, 'text', 'b.txt', 'text/plain'],
    ]);
  const { body } = await send([['variables.a'], ['variables.b']]);
  assert.deepEqual(body, { data: { a: true, b: true } });
  for (const name of ['2', 'length']) {
    assert.equal((await send([['variables.a'], ['variables.b']], name)).status, 400, name);
  }
  for (const map of ['variables.a', [['variables.a']], 7]) {
    assert.equal((await send(map)).status, 400, JSON.stringify(map));
  }
});

test('a socket begins with a payload that is empty, or has the token where clients put it', async (t) => {
  const server = await startServer(t);
  const token = `Bearer ${await logIn(server)}`;
  const init = { type: 'connection_init' };
  for (const protocols of [['graphql-transport-ws'], ['graphql-ws']]) {
    for (const [payload, account] of [
      ...[null, [], '', {}].map((empty) => [empty, null] as const),
      [{ Authorization: token }, 'user'],
      [{ authorization: token }, 'user'],
      [{ headers: { Authorization: token } }, 'user'],
      [{ headers: { authorization: token } }, 'user'],
      [{ headers: 'none', authorization: token }, 'user'],
    ] as const) {
      const client = await connectByHand(server.port, { protocols });
      assert.deepEqual(await client.ask({ ...init, payload }), { type: 'connection_ack' });
      const { payload: result } = await client.ask(subscribe('1', '{ me { username } }'));
      const me = account === null ? null : { username: account };
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
  const update = async (changes: object) => {
    const text = `mutation ($id: ID!, $changes: UpdatePostInput!) {
      updatePost(id: $id, changes: $changes) { title content status } }`;
    return (await post(server, { query: text, variables: { id, changes } })).json();
  };
  const changes = { title: null, content: null, status: 'PUBLISHED' };
  const post1 = { title: 'A', content: 'b', status: 'PUBLISHED' };
  assert.deepEqual(await update(changes), { data: { updatePost: post1 } });
  assert.deepEqual(await update({ title: null }), { data: { updatePost: post1 } });
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
    const response = await post(server, subscription, accept);
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/, accept);
    await response.body?.cancel();
    const plain = await post(server, { query }, accept);
    assert.match(plain.headers.get('content-type') ?? '', /json/, accept);
    await plain.body?.cancel();
  }
  for (const accept of ['application/json', 'application/json, text/event-stream;q=0']) {
    assert.equal((await post(server, subscription, accept)).status, 400, accept);
  }
});

test('a multipart query needs no token that others do not, and refusals are GraphQL errors', async (t) => {
  const server = await startServer(t, { env: { REQUIRE_AUTH: 'writes' } });
  const asked = await postParts(server, [
    ['operations', { query }],
    ['map', {}],
  ]);
  assert.deepEqual([asked.status, asked.body], [200, answer]);
  const upload = 'mutation ($file: Upload!) { upload(file: $file) }';
  const parts = [
    ['operations', { query: upload, variables: { file: null } }],
    ['map', { '0': ['variables.file'] }],
    ['0', 'text', 'a.txt', 'text/plain'],
  ] as const;
  for (const headers of [{}, { Authorization: 'Bearer x' }]) {
    const refused = await postParts(server, parts, { ...headers });
    assert.deepEqual([refused.status, codes(refused.body)], [401, ['UNAUTHENTICATED']]);
  }
  assert.equal((await server.fetch('/api/multiparts/a.txt')).status, 404);
  const headers = { Authorization: `Bearer ${await logIn(server)}` };
  assert.deepEqual((await postParts(server, parts, headers)).body, { data: { upload: true } });
});
