/** R40 over GraphQL: a mutation is done once under its key, over HTTP and sockets. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { codes, post, postParts } from '../support/graphql-http.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { connectReady, type Message } from '../support/ws-clients.ts';

interface Result {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly { readonly extensions: { readonly code: string } }[];
}

const create = (title: string, alias = 'createPost'): string =>
  `${alias}: createPost(createPostInput: {title: "${title}", content: "text"})`;
const mutation = (...fields: readonly string[]) => ({ query: `mutation { ${fields.join(' ')} }` });
const withKey = (request: object, idempotencyKey: unknown): object => {
  return { ...request, extensions: { idempotencyKey } };
};
const read = { query: '{ __typename }' };

/** Sends a request under the key of a header, and says what of the answer a client relies on. */
const ask = async (server: TestServer, request: object, key?: string) => {
  const sent = key === undefined ? {} : { 'Idempotency-Key': key };
  const { status, headers, body } = await post(server, request, { ...sent });
  const all = [body].flat() as readonly Result[];
  const isReplayed = headers.get('idempotency-replayed') === 'true';
  return { status, isReplayed, result: body, codes: all.map(codes), text: JSON.stringify(body) };
};

const titles = async (server: TestServer): Promise<readonly string[]> => {
  const posts = (await (await server.fetch('/posts')).json()) as { readonly title: string }[];
  return posts.map(({ title }) => title);
};
const start = (t: TestContext) => startServer(t, { env: { DEMO_DATA: 'false' } });

test('a mutation that is sent again has the answer of its first time, by a hash too', async (t) => {
  const server = await start(t);
  const request = mutation(create('one'));
  const first = await ask(server, request, 'k');
  assert.deepEqual([first.status, first.isReplayed, first.codes], [200, false, [[]]]);
  assert.deepEqual(await ask(server, request, '"k"'), { ...first, isReplayed: true });
  const sha256Hash = createHash('sha256').update(request.query).digest('hex');
  const extensions = { persistedQuery: { version: 1, sha256Hash }, idempotencyKey: 'k' };
  for (const body of [{ ...request, extensions }, { extensions }])
    assert.equal((await ask(server, body)).isReplayed, true);
  for (const other of [
    mutation(create('other')),
    [mutation(create('other'))],
    withKey({ query: `mutation Named { ${create('one')} }` }, 'k'),
  ]) {
    const { text, isReplayed } = await ask(server, other, 'k');
    assert.match(text, /was used for another request.*BAD_USER_INPUT/);
    assert.equal(isReplayed, false);
  }
  assert.deepEqual(await titles(server), ['one']);
  // Under another key it is another request.
  assert.equal((await ask(server, request, 'other')).isReplayed, false);
  assert.equal((await titles(server)).length, 2);
  const query = `mutation A { ${create('a')} } mutation B { ${create('b')} }`;
  assert.deepEqual((await ask(server, { query, operationName: 'A' }, 'named')).codes, [[]]);
  const { text } = await ask(server, { query, operationName: 'B' }, 'named');
  assert.match(text, /was used for another request/);
});

test('a key is for one write: several mutations are refused, and none is done', async (t) => {
  const server = await start(t);
  const [one, two] = [mutation(create('one')), mutation(create('two'))];
  const both = mutation(create('one', 'a'), create('two', 'b'));
  const spread = {
    query: `mutation { ...A ...B } fragment A on Mutation { ${create('one', 'a')} }
      fragment B on Mutation { ${create('two', 'b')} }`,
  };
  for (const body of [both, spread, [one, two], [one, one], [read, both]]) {
    const { status, text } = await ask(server, body, 'k');
    assert.equal(status, 400, JSON.stringify(body));
    assert.match(text, /An idempotency key is for one write.*BAD_USER_INPUT/);
  }
  assert.equal((await ask(server, withKey(both, 'k'))).status, 400);
  const some = await ask(server, [withKey(both, 'k'), two]);
  assert.deepEqual(some.codes, [['BAD_USER_INPUT'], []]);
  assert.deepEqual(await titles(server), ['two']);
  // What is written twice is one field (GraphQL §5.3.2).
  assert.equal((await ask(server, mutation(create('x'), create('x')), 'k')).status, 200);
});

test('operations of a batch have keys of their own, and what stores nothing uses up none', async (t) => {
  const server = await start(t);
  const blank = withKey(mutation(create(' ')), 'blank');
  const [one, two] = ['one', 'two'].map((title) => withKey(mutation(create(title)), title));
  const batch = [one, blank, { query: '{ nothing }' }, two] as object[];
  const first = await ask(server, batch);
  assert.deepEqual(first.codes[1], ['BAD_USER_INPUT']);
  assert.deepEqual(await ask(server, batch), { ...first, isReplayed: true });
  assert.equal((await ask(server, mutation(create('three')), 'blank')).isReplayed, false);
  // The header is that of the one mutation that has no other.
  const mixed = [...batch, read, mutation(create('four'))];
  assert.equal((await ask(server, mixed, 'k4')).status, 200);
  assert.equal((await ask(server, mixed, 'k4')).isReplayed, true);
  assert.deepEqual(await titles(server), ['four', 'three', 'two', 'one']);
});

test('a change that is sent again changes nothing, and answers with what is there now', async (t) => {
  const server = await start(t);
  const answer = async (field: string, key?: string) => {
    const { result, isReplayed, codes: of } = await ask(server, mutation(field), key);
    return [Object.values((result as Result).data ?? {})[0] ?? of[0], isReplayed];
  };
  const id = (await answer(create('one')))[0] as string;
  const update = (title: string): string =>
    `updatePost(id: "${id}", changes: {title: "${title}"}) { title }`;
  const remove = `deletePost(id: "${id}")`;
  for (const [field, key, ...expected] of [
    [update('two'), 'u', { title: 'TWO' }, false],
    [update('three'), undefined, { title: 'THREE' }, false],
    [update('two'), 'u', { title: 'THREE' }, true],
    [update('four'), 'u', ['BAD_USER_INPUT'], false],
    [remove, 'd', id, false],
    [remove, 'd', id, true],
    [remove, undefined, ['NOT_FOUND'], false],
  ] as const) {
    assert.deepEqual(await answer(field, key), expected, `${field} ${key}`);
  }
});

test('a key that is not valid refuses the request, or the operation that has it', async (t) => {
  const server = await start(t);
  const request = mutation(create('one'));
  // A response that could be kept changes nothing, and a GET has no key.
  for (const _ of [1, 2]) assert.equal((await ask(server, read)).status, 200);
  const headers = { 'Idempotency-Key': 'a b' };
  assert.equal((await server.fetch('/graphql?query={__typename}', { headers })).status, 200);
  for (const body of [request, read, [request]]) {
    const { status, text } = await ask(server, body, 'a b');
    assert.equal(status, 400, text);
    assert.match(text, /idempotency key must be.*BAD_USER_INPUT/);
  }
  for (const key of ['', 'a b', 7, {}, ['k']]) {
    const { codes: found } = await ask(server, [withKey(request, key), read]);
    assert.deepEqual(found, [['BAD_USER_INPUT'], []], JSON.stringify(key));
  }
  assert.equal((await ask(server, withKey(request, null))).isReplayed, false);
  assert.deepEqual(await titles(server), ['one']);
});

test('the extension is the same key over HTTP and over sockets of both protocols', async (t) => {
  const server = await start(t);
  const request = mutation(create('one'));
  const { result } = await ask(server, request, 'k');
  const again = await ask(server, [withKey(request, '"k"')]);
  assert.deepEqual([again.isReplayed, again.result], [true, [result]]);
  for (const [protocol, type] of [
    ['graphql-transport-ws', 'subscribe'],
    ['graphql-ws', 'start'],
  ] as const) {
    const client = await connectReady(server.port, { protocols: [protocol] });
    const send = (id: string, payload: object): Promise<Message> =>
      client.ask({ id, type, payload });
    assert.deepEqual((await send('1', withKey(request, 'k'))).payload, result);
    assert.equal((await client.next()).type, 'complete');
    for (const body of [withKey(request, 'a b'), withKey(mutation(create('other')), 'k')]) {
      assert.match(JSON.stringify(await send('2', body)), /BAD_USER_INPUT/);
    }
    await client.close();
  }
  assert.deepEqual(await titles(server), ['one']);
});

test('a file that is uploaded again is neither stored nor replaced', async (t) => {
  const server = await start(t);
  const query = 'mutation ($file: Upload!) { upload(file: $file) }';
  const send = async (content: string, key: string, name = 'a.txt') => {
    const operations = ['operations', { query, variables: { file: null } }] as const;
    const map = ['map', { '0': ['variables.file'] }] as const;
    const parts = [operations, map, ['0', content, name, 'text/plain']] as const;
    return postParts(server, parts, { 'Idempotency-Key': key });
  };
  const stored = async (): Promise<string> => (await server.fetch('/api/multiparts/a.txt')).text();
  const done = { data: { upload: true } };
  for (const [content, key] of ['first k', 'second other', 'first k'].map((one) =>
    one.split(' '),
  )) {
    assert.deepEqual((await send(content ?? '', key ?? '')).body, done, content);
  }
  assert.equal(await stored(), 'second');
  assert.equal(server.logged.filter(({ event }) => event === 'file uploaded').length, 2);
  assert.deepEqual(codes((await send('first', 'k', 'b.txt')).body), ['BAD_USER_INPUT']);
  assert.equal((await server.fetch('/api/multiparts/b.txt')).status, 404);
  assert.equal((await send('first', 'a b')).status, 400);
});
