/** Who did what (R53): a line for each change, login, renewal and refusal, on every door. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { logIn, refresh } from '../support/login.ts';
import { runProgram } from '../support/program.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { connectReady, modernClient, subscribe } from '../support/ws-clients.ts';

const known = new Set(['change', 'login', 'login failed', 'refresh', 'refused']);

/** Said of each deed but its request. */
function deedsOf({ logged }: Pick<TestServer, 'logged'>): unknown[][] {
  return logged
    .filter(({ event }) => known.has(event))
    .map(({ event, account, action, id, requestId, client }) => {
      assert.equal(typeof requestId, 'string');
      assert.equal(client, '127.0.0.1');
      return [event, account, action, id];
    });
}

interface Asking {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Asks a server, in the name of who has the token. */
function asking(server: TestServer, { token, headers: more = {} }: Asking = {}) {
  const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const send = async (method: string, path: string, body?: unknown) => {
    const isPatch = method === 'PATCH';
    const patchType = Array.isArray(body) ? 'json-patch' : 'merge-patch';
    const type = isPatch ? `application/${patchType}+json` : 'application/json';
    const headers = { ...authorization, 'Content-Type': type, ...more };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await server.fetch(path, { method, headers, ...sent });
    await response.arrayBuffer();
    return response;
  };
  return {
    send,
    /** The id in the `Location` of what was made. */
    make: async (path: string, body: unknown): Promise<string> => {
      const response = await send('POST', path, body);
      assert.equal(response.status, 201, path);
      return response.headers.get('location')?.split('/').at(-1) ?? '';
    },
    ask: async (body: unknown): Promise<unknown> => {
      const init = { method: 'POST', headers: { ...authorization, ...more } };
      const headers = { ...init.headers, 'Content-Type': 'application/json' };
      const response = await server.fetch('/graphql', {
        ...init,
        headers,
        body: JSON.stringify(body),
      });
      return response.json();
    },
    upload: async (path: string, names: readonly string[], status = 200): Promise<void> => {
      const body = new FormData();
      for (const name of names) body.append('part', new Blob(['x']), name);
      const init = { method: 'POST', headers: { ...authorization, ...more }, body };
      assert.equal((await server.fetch(path, init)).status, status);
    },
  };
}

const start = (t: TestContext, env: Readonly<Record<string, string>> = {}) =>
  startServer(t, { env: { LOG_REQUESTS: 'none', ...env } });

test('what nobody in particular changes over REST is a line with the id of its record', async (t) => {
  const server = await start(t);
  const { send, make, upload } = asking(server);
  const post = await make('/posts', { title: 'a', content: 'b' });
  const comment = await make(`/posts/${post}/comments`, { content: 'c' });
  const todo = await make('/api/todos', { title: 'a' });
  const article = await make('/api/articles', { title: 'a' });
  await send('PATCH', `/posts/${post.toUpperCase()}`, { title: 'd' });
  await send('PATCH', `/api/articles/${article}`, { title: 'd' });
  const at = [{ op: 'replace', path: '/0/title', value: 'f' }];
  await send('PATCH', '/api/articles', at);
  await upload('/api/multiparts/simple', ['a b.txt']);
  await upload('/api/multiparts/list', ['c,d.txt', 'é.txt']);
  await send('DELETE', '/api/multiparts/e%CC%81.txt');
  await send('DELETE', `/comments/${comment}`);
  await send('DELETE', `/api/todos/${todo}`);
  await send('DELETE', `/posts/${post}`);
  // None of these changes anything.
  await send('GET', '/posts');
  await send('DELETE', `/posts/${post}`);
  await send('POST', '/posts', { title: ' ' });
  await server.fetch('/posts', { method: 'OPTIONS' });
  const nobody = (action: string, id: string) => ['change', undefined, action, id];
  assert.deepEqual(deedsOf(server), [
    nobody('POST /posts', post),
    nobody('POST /posts/{id}/comments', comment),
    nobody('POST /api/todos', todo),
    nobody('POST /api/articles', article),
    nobody('PATCH /posts/{id}', post),
    nobody('PATCH /api/articles/{id}', article),
    nobody('PATCH /api/articles', '1'),
    nobody('POST /api/multiparts/simple', 'a b.txt'),
    nobody('POST /api/multiparts/list', 'c,d.txt'),
    nobody('POST /api/multiparts/list', 'é.txt'),
    nobody('DELETE /api/multiparts/{name}', 'é.txt'),
    nobody('DELETE /comments/{id}', comment),
    nobody('DELETE /api/todos/{id}', todo),
    nobody('DELETE /posts/{id}', post),
  ]);
});

test('each mutation is a line: in batches, under aliases, over sockets, with files', async (t) => {
  const server = await start(t);
  const { ask } = asking(server);
  const create = 'createPost(createPostInput: {title: "a", content: "b"})';
  const { data } = (await ask({ query: `mutation { a: ${create} b: ${create} }` })) as {
    readonly data: Readonly<Record<'a' | 'b', string>>;
  };
  const comment = `mutation { addComment(commentInput: {postId: "${data.a}", content: "c"}) }`;
  const added = (await ask([{ query: comment }, { query: comment }])) as readonly {
    readonly data: { readonly addComment: string };
  }[];
  const { run, client } = modernClient(server.port);
  await run(`mutation { updatePost(id: "${data.b}", changes: {title: "d"}) { id } }`);
  await run(`mutation { deletePost(id: "${data.b}") }`);
  await client.dispose();
  const form = new FormData();
  const query = 'mutation ($file: Upload!) { upload(file: $file) }';
  form.append('operations', JSON.stringify({ query, variables: { file: null } }));
  form.append('map', '{"0": ["variables.file"]}');
  form.append('0', new Blob(['x']), 'a.txt');
  await server.fetch('/graphql', { method: 'POST', body: form });
  // Neither of these changes anything.
  await ask({ query: `mutation { deletePost(id: "${data.b}") }` });
  await ask({ query: '{ allPosts { id } }' });
  assert.deepEqual(deedsOf(server), [
    ['change', undefined, 'createPost', data.a],
    ['change', undefined, 'createPost', data.b],
    ...added.map((one) => ['change', undefined, 'addComment', one.data.addComment]),
    ['change', undefined, 'updatePost', data.b],
    ['change', undefined, 'deletePost', data.b],
    ['change', undefined, 'upload', 'a.txt'],
  ]);
});

test('what is sent again under its key is no second line', async (t) => {
  const server = await start(t);
  const token = await logIn(server);
  const { make } = asking(server, { token, headers: { 'Idempotency-Key': 'a' } });
  const { ask } = asking(server, { token, headers: { 'Idempotency-Key': 'b' } });
  const { upload } = asking(server, { token, headers: { 'Idempotency-Key': 'c' } });
  const query = 'mutation { createPost(createPostInput: {title: "a", content: "b"}) }';
  for (let round = 0; round < 3; round += 1) {
    await make('/api/todos', { title: 'a' });
    await ask({ query });
    await upload('/api/multiparts/simple', ['a.txt']);
  }
  const actions = deedsOf(server).map(([, account, action]) => [account, action]);
  assert.deepEqual(actions, [
    ['user', 'POST /auth/login'],
    ['user', 'POST /api/todos'],
    ['user', 'createPost'],
    ['user', 'POST /api/multiparts/simple'],
  ]);
});

test('logins, renewals and what an account may not do are lines too', async (t) => {
  const server = await start(t, { REQUIRE_AUTH: 'owners', LOGIN_FAILURES_MAX: '9' });
  const admin = asking(server, { token: await logIn(server, 'admin') });
  const post = await admin.make('/posts', { title: 'a', content: 'b' });
  await admin.send('PATCH', `/posts/${post}`, { status: 'PUBLISHED' });
  const comment = await admin.make(`/posts/${post}/comments`, { content: 'c' });
  for (let count = 0; count < 3; count += 1) {
    const wrong = { username: 'user', password: 'wrong' };
    assert.equal((await asking(server).send('POST', '/auth/login', wrong)).status, 401);
  }
  const token = await refresh(server, await logIn(server));
  const user = asking(server, { token });
  assert.equal((await user.send('DELETE', `/posts/${post}`)).status, 403);
  assert.equal((await user.send('DELETE', `/comments/${comment}`)).status, 403);
  await admin.upload('/api/multiparts/simple', ['a.txt']);
  await user.upload('/api/multiparts/simple', ['a.txt'], 403);
  await user.ask([
    { query: `mutation { deleteComment(id: "${comment}") }` },
    { query: `mutation { updatePost(id: "${post}", changes: {title: "x"}) { id } }` },
  ]);
  const { run, client } = modernClient(server.port, {
    connectionParams: { Authorization: `Bearer ${token}` },
  });
  await run(`mutation { deletePost(id: "${post}") }`);
  await client.dispose();
  assert.equal((await asking(server).send('DELETE', `/posts/${post}`)).status, 401);
  assert.deepEqual(deedsOf(server), [
    ['login', 'admin', 'POST /auth/login', undefined],
    ['change', 'admin', 'POST /posts', post],
    ['change', 'admin', 'PATCH /posts/{id}', post],
    ['change', 'admin', 'POST /posts/{id}/comments', comment],
    ...Array.from({ length: 3 }, () => ['login failed', 'user', 'POST /auth/login', undefined]),
    ['login', 'user', 'POST /auth/login', undefined],
    ['refresh', 'user', 'POST /auth/refresh', undefined],
    ['refused', 'user', 'DELETE /posts/{id}', post],
    ['refused', 'user', 'DELETE /comments/{id}', comment],
    ['change', 'admin', 'POST /api/multiparts/simple', 'a.txt'],
    ['refused', 'user', 'POST /api/multiparts/simple', 'a.txt'],
    ['refused', 'user', 'deleteComment', comment],
    ['refused', 'user', 'updatePost', post],
    ['refused', 'user', 'deletePost', post],
  ]);
  assert.doesNotMatch(JSON.stringify(server.logged), /wrong|eyJ/);
});

test('a failed login names the account, if there is one, and no password', async (t) => {
  const server = await start(t, { LOGIN_FAILURES_MAX: '1' });
  const { send } = asking(server);
  for (const username of ['user', 'user', 'my-password-by-mistake']) {
    await send('POST', '/auth/login', { username, password: 'hunter2' });
  }
  const failed = ['login failed', 'POST /auth/login'];
  assert.deepEqual(
    server.logged
      .slice(1)
      .map(({ event, action, account, count }) => [event, action, account, count]),
    [
      [...failed, 'user', undefined],
      ['login refused', undefined, undefined, 1],
      [...failed, undefined, undefined],
    ],
  );
  assert.doesNotMatch(JSON.stringify(server.logged), /hunter2|by-mistake/);
});

test('the client is the one behind a trusted proxy, over sockets too', async (t) => {
  const server = await startServer(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } });
  const headers = { 'X-Forwarded-For': '203.0.113.9' };
  await asking(server, { headers }).make('/api/todos', { title: 'a' });
  const query = 'mutation { createPost(createPostInput: {title: "a", content: "b"}) }';
  await asking(server, { headers }).ask({ query });
  const socket = await connectReady(server.port, { headers });
  assert.equal((await socket.ask(subscribe('1', query))).type, 'next');
  await socket.close();
  const changes = server.logged.filter(({ event }) => event === 'change');
  assert.deepEqual(
    changes.map(({ action, client }) => [action, client]),
    ['POST /api/todos', 'createPost', 'createPost'].map((action) => [action, '203.0.113.9']),
  );
});

test('no flood makes the log lose who did what', async (t) => {
  const count = 1_000;
  const program = await runProgram(t, { env: { LOG_REQUESTS: 'none' } });
  const { url } = await program.listening();
  const body = JSON.stringify({ title: 'a' });
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body };
  const one = async (): Promise<void> => {
    for (let sent = 0; sent < count / 10; sent += 1) {
      const response = await fetch(`${url}/api/todos`, init);
      assert.equal(response.status, 201);
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: 10 }, one));
  program.child.kill('SIGTERM');
  assert.equal((await program.ended()).code, 0);
  assert.equal(program.output().match(/"event":"change"/g)?.length, count);
  assert.doesNotMatch(program.output(), /dropped/);
});
