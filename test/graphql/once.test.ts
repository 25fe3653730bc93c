/** R40 over GraphQL: a mutation is done once under its key, over HTTP and sockets. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { codes, postParts } from '../support/graphql-http.ts';
import { logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { connectReady, type Message } from '../support/ws-clients.ts';

interface Result {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: { code: string } }[];
}

const create = (title: string, alias = 'createPost'): string =>
  `${alias}: createPost(createPostInput: {title: "${title}", content: "text"})`;
const mutation = (...fields: readonly string[]): { readonly query: string } => ({
  query: `mutation { ${fields.join(' ')} }`,
});
const withKey = (request: object, idempotencyKey: unknown): object => ({
  ...request,
  extensions: { idempotencyKey },
});

async function post(
  { url }: TestServer,
  body: object,
  { key, token }: { readonly key?: string | undefined; readonly token?: string } = {},
) {
  const headers = {
    'Content-Type': 'application/json',
    ...(key !== undefined && { 'Idempotency-Key': key }),
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
  };
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  const replayed = response.headers.get('idempotency-replayed');
  return { status: response.status, replayed, result: await response.json() };
}

const titles = async (server: TestServer): Promise<readonly string[]> => {
  const posts = (await (await server.fetch('/posts')).json()) as { readonly title: string }[];
  return posts.map(({ title }) => title);
};
const start = (t: TestContext, env = {}) =>
  startServer(t, { env: { DEMO_DATA: 'false', USERS_FILE: '', ...env } });

test('a mutation that is sent again has the answer of its first time', async (t) => {
  const server = await start(t);
  const request = mutation(create('one'));
  const first = await post(server, request, { key: 'k' });
  assert.deepEqual([first.status, first.replayed], [200, null]);
  assert.deepEqual(await post(server, request, { key: '"k"' }), { ...first, replayed: 'true' });
  assert.deepEqual(await titles(server), ['one']);
  // Without a key, and under another one, it is another request.
  assert.equal((await post(server, request)).replayed, null);
  assert.equal((await post(server, request, { key: 'other' })).replayed, null);
  assert.equal((await titles(server)).length, 3);
});

test('a key is for one write: several mutations are refused, and none is done', async (t) => {
  const server = await start(t);
  const [one, two] = [mutation(create('one')), mutation(create('two'))];
  const both = mutation(create('one', 'a'), create('two', 'b'));
  const spread = {
    query: `mutation { ...A ...B } fragment A on Mutation { ${create('one', 'a')} }
      fragment B on Mutation { ${create('two', 'b')} }`,
  };
  for (const body of [both, spread, [one, two], [one, one], [{ query: '{ __typename }' }, both]]) {
    const { status, result } = await post(server, body, { key: 'k' });
    assert.equal(status, 400, JSON.stringify(body));
    assert.match(JSON.stringify(result), /An idempotency key is for one write.*BAD_USER_INPUT/);
  }
  assert.equal((await post(server, withKey(both, 'k'))).status, 400);
  const [refused, done] = (await post(server, [withKey(both, 'k'), two])).result as Result[];
  assert.deepEqual([codes(refused), codes(done)], [['BAD_USER_INPUT'], []]);
  assert.deepEqual(await titles(server), ['two']);
  // What is written twice is one field (GraphQL §5.3.2).
  assert.equal((await post(server, mutation(create('x'), create('x')), { key: 'k' })).status, 200);
});

test('operations of a batch have keys of their own, and what stores nothing uses up none', async (t) => {
  const server = await start(t);
  const blank = withKey(mutation(create(' ')), 'blank');
  const batch = [
    withKey(mutation(create('one')), 'k1'),
    blank,
    { query: '{ nothing }' },
    withKey(mutation(create('two')), 'k2'),
  ];
  const first = await post(server, batch);
  assert.deepEqual(codes((first.result as Result[])[1]), ['BAD_USER_INPUT']);
  assert.deepEqual(await post(server, batch), { ...first, replayed: 'true' });
  assert.deepEqual(await titles(server), ['two', 'one']);
  assert.equal((await post(server, mutation(create('three')), { key: 'blank' })).replayed, null);
  // The header is that of the one mutation that has no other.
  const mixed = [...batch, { query: '{ __typename }' }, mutation(create('four'))];
  assert.equal((await post(server, mixed, { key: 'k4' })).status, 200);
  assert.equal((await post(server, mixed, { key: 'k4' })).replayed, 'true');
  assert.deepEqual(await titles(server), ['four', 'three', 'two', 'one']);
});

test('another request under a used key is refused', async (t) => {
  const server = await start(t);
  await post(server, mutation(create('one')), { key: 'k' });
  for (const other of [
    mutation(create('other')),
    [mutation(create('other'))],
    withKey({ query: `mutation Named { ${create('one')} }` }, 'k'),
  ]) {
    const { result, replayed } = await post(server, other, { key: 'k' });
    assert.match(JSON.stringify(result), /was used for another request.*BAD_USER_INPUT/);
    assert.equal(replayed, null);
  }
  assert.deepEqual(await titles(server), ['one']);
});

test('a change that is sent again changes nothing, and answers what its first time did', async (t) => {
  const server = await start(t);
  const ask = async (field: string, key?: string) => {
    const { result, replayed } = await post(server, mutation(field), { key });
    const { data, errors } = result as Result;
    return [Object.values(data ?? {})[0] ?? codes({ errors }), replayed] as const;
  };
  const [id = ''] = (await ask(create('one'))) as readonly string[];
  const update = (title: string): string =>
    `updatePost(id: "${id}", changes: {title: "${title}"}) { title }`;
  assert.deepEqual(await ask(update('two'), 'u'), [{ title: 'TWO' }, null]);
  await ask(update('three'));
  assert.deepEqual(await ask(update('two'), 'u'), [{ title: 'THREE' }, 'true']);
  assert.deepEqual(await ask(update('four'), 'u'), [['BAD_USER_INPUT'], null]);
  const [comment = ''] = (await ask(
    `addComment(commentInput: {postId: "${id}", content: "a"})`,
  )) as readonly string[];
  for (const [field, removed] of [
    ['deleteComment', comment],
    ['deletePost', id],
  ] as const) {
    await t.test(field, async () => {
      const remove = `${field}(id: "${removed}")`;
      assert.deepEqual(await ask(remove, field), [removed, null]);
      assert.deepEqual(await ask(remove, field), [removed, 'true']);
      assert.deepEqual(await ask(remove), [['NOT_FOUND'], null]);
    });
  }
});

test('a key that is not valid refuses the request, or the operation that has it', async (t) => {
  const server = await start(t);
  const request = mutation(create('one'));
  for (const key of ['a b', '""', 'k'.repeat(256)]) {
    for (const [at, body] of [request, { query: '{ __typename }' }, [request]].entries()) {
      const { status, result } = await post(server, body, { key });
      assert.equal(status, 400, `body ${at}`);
      assert.deepEqual(codes(result), ['BAD_USER_INPUT'], `body ${at}`);
      assert.match(JSON.stringify(result), /idempotency key must be/, `body ${at}`);
    }
  }
  for (const key of ['', 'a b', 7, {}, ['k']]) {
    const { result } = await post(server, [withKey(request, key), { query: '{ __typename }' }]);
    const [refused, other] = result as Result[];
    assert.deepEqual(codes(refused), ['BAD_USER_INPUT'], JSON.stringify(key));
    assert.deepEqual(other, { data: { __typename: 'Query' } }, JSON.stringify(key));
  }
  assert.equal((await post(server, withKey(request, null))).replayed, null);
  assert.deepEqual(await titles(server), ['one']);
});

test('the extension is the same key over HTTP and over sockets of both protocols', async (t) => {
  const server = await start(t);
  const request = mutation(create('one'));
  const first = await post(server, request, { key: 'k' });
  const again = await post(server, [withKey(request, '"k"')]);
  assert.deepEqual(again, { status: 200, replayed: 'true', result: [first.result] });
  for (const [protocol, type] of [
    ['graphql-transport-ws', 'subscribe'],
    ['graphql-ws', 'start'],
  ] as const) {
    await t.test(protocol, async () => {
      const client = await connectReady(server.port, { protocols: [protocol] });
      const ask = (id: string, payload: object): Promise<Message> =>
        client.ask({ id, type, payload });
      assert.deepEqual((await ask('1', withKey(request, 'k'))).payload, first.result);
      assert.equal((await client.next()).type, 'complete');
      const { type: error, payload } = await ask('2', withKey(request, 'a b'));
      assert.equal(error, 'error');
      assert.match(JSON.stringify(payload), /BAD_USER_INPUT/);
      const other = await ask('3', withKey(mutation(create('other')), 'k'));
      assert.match(JSON.stringify(other.payload), /was used for another request/);
      await client.close();
    });
  }
  assert.deepEqual(await titles(server), ['one']);
});

test('a comment that is sent again is announced once', async (t) => {
  const server = await start(t);
  const created = (await post(server, mutation(create('one')))).result as Result;
  const postId = String(created.data?.['createPost']);
  const client = await connectReady(server.port);
  const query = 'subscription { commentAdded { content } }';
  client.send({ id: 's', type: 'subscribe', payload: { query } });
  const add = (content: string): object =>
    mutation(`addComment(commentInput: {postId: "${postId}", content: "${content}"})`);
  for (let n = 0; n < 3; n += 1) {
    const payload = withKey(add('once'), 'k');
    client.send({ id: `m${n}`, type: 'subscribe', payload });
  }
  client.send({ id: 'then', type: 'subscribe', payload: add('then') });
  const contents: unknown[] = [];
  while (contents.at(-1) !== 'then') {
    const { id, payload } = await client.next();
    const { commentAdded } = (payload as Result | undefined)?.data ?? {};
    if (id === 's') contents.push((commentAdded as { readonly content: string }).content);
  }
  assert.deepEqual(contents, ['once', 'then']);
});

test('a file that is uploaded again is neither stored nor replaced', async (t) => {
  const server = await start(t);
  const query = 'mutation ($file: Upload!) { upload(file: $file) }';
  const send = async (content: string, key: string, name = 'a.txt') => {
    const parts = [
      ['operations', { query, variables: { file: null } }],
      ['map', { '0': ['variables.file'] }],
      ['0', content, name, 'text/plain'],
    ] as const;
    return postParts(server, parts, { 'Idempotency-Key': key });
  };
  const stored = async (): Promise<string> => (await server.fetch('/api/multiparts/a.txt')).text();
  const done = { data: { upload: true } };
  assert.deepEqual((await send('first', 'k')).body, done);
  assert.deepEqual((await send('second', 'other')).body, done);
  assert.deepEqual((await send('first', 'k')).body, done);
  assert.equal(await stored(), 'second');
  assert.equal(server.logged.filter(({ event }) => event === 'file uploaded').length, 2);
  assert.deepEqual(codes((await send('first', 'k', 'b.txt')).body), ['BAD_USER_INPUT']);
  assert.equal((await server.fetch('/api/multiparts/b.txt')).status, 404);
  assert.equal((await send('first', 'a b')).status, 400);
});

test('a hash in the place of the document it names is the same request', async (t) => {
  const server = await start(t);
  const { query } = mutation(create('one'));
  const sha256Hash = createHash('sha256').update(query).digest('hex');
  const extensions = { persistedQuery: { version: 1, sha256Hash }, idempotencyKey: 'k' };
  assert.deepEqual(codes((await post(server, { extensions })).result), [
    'PERSISTED_QUERY_NOT_FOUND',
  ]);
  assert.equal((await post(server, { query, extensions })).replayed, null);
  assert.equal((await post(server, { extensions })).replayed, 'true');
  assert.equal((await post(server, { query }, { key: 'k' })).replayed, 'true');
  assert.deepEqual(await titles(server), ['one']);
});

test('accounts share no key, and a key needs the token that the mutation needs', async (t) => {
  const server = await startServer(t, { env: { REQUIRE_AUTH: 'writes' } });
  const [user, admin] = [await logIn(server), await logIn(server, 'admin')];
  const request = mutation(create('one'));
  const comment = mutation(
    'addComment(commentInput: {postId: "00000000-0000-0000-0000-000000000000", content: "a"})',
  );
  // The second has no key of its own.
  const { result } = await post(server, [withKey(request, 'k'), comment, comment]);
  for (const [at, one] of (result as Result[]).entries())
    assert.deepEqual(codes(one), ['UNAUTHENTICATED'], `number ${at}`);
  for (const replayed of [null, 'true']) {
    for (const token of [user, admin]) {
      const answer = await post(server, request, { key: 'k', token });
      assert.equal(answer.replayed, replayed, token);
    }
  }
});
