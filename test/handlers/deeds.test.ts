/** Who did what (R53): a line for each change, login, renewal and refusal, on every door. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { pluck, times } from '../support/lists.ts';
import { logIn, refresh } from '../support/login.ts';
import { runProgram } from '../support/program.ts';
import { type Sent, startServer, type TestServer } from '../support/server.ts';
import { connectReady, modernClient, subscribe } from '../support/ws-clients.ts';

const known = new Set(['change', 'login', 'login failed', 'refresh', 'refused']);
const createPost = 'createPost(createPostInput: {title: "a", content: "b"})';

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

/** Asks a server, in the name of who has the token. */
function asking(server: TestServer, token?: string, more: Sent = {}) {
  const headers = { ...(token !== undefined && { Authorization: `Bearer ${token}` }), ...more };
  const send = async (method: string, path: string, body?: unknown): Promise<number> => {
    const kind = Array.isArray(body) ? 'json-patch' : 'merge-patch';
    const type = method === 'PATCH' && { 'Content-Type': `application/${kind}+json` };
    return (await server.send(method, path, body, { ...headers, ...type })).status;
  };
  return {
    send,
    /** The id of what was made. */
    make: async (path: string, body: unknown): Promise<string> =>
      (await server.make(path, body, headers)).split('/').at(-1) ?? '',
    ask: async (body: unknown): Promise<unknown> =>
      (await server.send('POST', '/graphql', body, headers)).json(),
    upload: async (kind: 'simple' | 'list', names: readonly string[]): Promise<number> => {
      const body = new FormData();
      for (const name of names) body.append('part', new Blob(['x']), name);
      const init = { method: 'POST', headers, body };
      return (await server.fetch(`/api/multiparts/${kind}`, init)).status;
    },
  };
}

const start = (t: TestContext, env: Sent = {}) =>
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
  await send('PATCH', '/api/articles', [{ op: 'replace', path: '/0/title', value: 'f' }]);
  await upload('simple', ['a b.txt']);
  await upload('list', ['c,d.txt', 'é.txt']);
  await send('DELETE', '/api/multiparts/e%CC%81.txt');
  await send('DELETE', `/comments/${comment}`);
  await send('DELETE', `/api/todos/${todo}`);
  await send('DELETE', `/posts/${post}`);
  // None of these changes anything.
  await server.fetch('/posts');
  await send('DELETE', `/posts/${post}`);
  await send('POST', '/posts', { title: ' ' });
  await server.fetch('/posts', { method: 'OPTIONS' });
  const change = (action: string, id: string) => ['change', undefined, action, id];
  assert.deepEqual(deedsOf(server), [
    change('POST /posts', post),
    change('POST /posts/{id}/comments', comment),
    change('POST /api/todos', todo),
    change('POST /api/articles', article),
    change('PATCH /posts/{id}', post),
    change('PATCH /api/articles/{id}', article),
    change('PATCH /api/articles', '1'),
    change('POST /api/multiparts/simple', 'a b.txt'),
    change('POST /api/multiparts/list', 'c,d.txt'),
    change('POST /api/multiparts/list', 'é.txt'),
    change('DELETE /api/multiparts/{name}', 'é.txt'),
    change('DELETE /comments/{id}', comment),
    change('DELETE /api/todos/{id}', todo),
    change('DELETE /posts/{id}', post),
  ]);
});

test('each mutation is a line: in batches, under aliases, over sockets, with files', async (t) => {
  const server = await start(t);
  const { ask } = asking(server);
  const { data } = (await ask({ query: `mutation { a: ${createPost} b: ${createPost} }` })) as {
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
  const under = (key: string) => asking(server, undefined, { 'Idempotency-Key': key });
  for (const _ of times(2)) {
    await under('a').make('/api/todos', { title: 'a' });
    await under('b').ask({ query: `mutation { ${createPost} }` });
    await under('c').upload('simple', ['a.txt']);
  }
  const actions = deedsOf(server).map(([, , action]) => action);
  assert.deepEqual(actions, ['POST /api/todos', 'createPost', 'POST /api/multiparts/simple']);
});

test('logins, renewals and what an account may not do are lines too', async (t) => {
  const server = await start(t, { REQUIRE_AUTH: 'owners', LOGIN_FAILURES_MAX: '9' });
  const admin = asking(server, await logIn(server, 'admin'));
  const post = await admin.make('/posts', { title: 'a', content: 'b' });
  await admin.send('PATCH', `/posts/${post}`, { status: 'PUBLISHED' });
  const comment = await admin.make(`/posts/${post}/comments`, { content: 'c' });
  const wrong = { username: 'user', password: 'wrong' };
  assert.equal(await asking(server).send('POST', '/auth/login', wrong), 401);
  const token = await refresh(server, await logIn(server));
  const user = asking(server, token);
  assert.equal(await user.send('DELETE', `/posts/${post}`), 403);
  assert.equal(await user.send('DELETE', `/comments/${comment}`), 403);
  assert.equal(await admin.upload('simple', ['a.txt']), 200);
  assert.equal(await user.upload('simple', ['a.txt']), 403);
  await user.ask([
    { query: `mutation { deleteComment(id: "${comment}") }` },
    { query: `mutation { updatePost(id: "${post}", changes: {title: "x"}) { id } }` },
  ]);
  const connectionParams = { Authorization: `Bearer ${token}` };
  const { run, client } = modernClient(server.port, { connectionParams });
  await run(`mutation { deletePost(id: "${post}") }`);
  await client.dispose();
  assert.equal(await asking(server).send('DELETE', `/posts/${post}`), 401);
  assert.deepEqual(deedsOf(server), [
    ['login', 'admin', 'POST /auth/login', undefined],
    ['change', 'admin', 'POST /posts', post],
    ['change', 'admin', 'PATCH /posts/{id}', post],
    ['change', 'admin', 'POST /posts/{id}/comments', comment],
    ['login failed', 'user', 'POST /auth/login', undefined],
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
  for (const username of ['user', 'user', 'my-password-by-mistake']) {
    await asking(server).send('POST', '/auth/login', { username, password: 'hunter2' });
  }
  const told = server.logged.slice(1);
  assert.deepEqual(
    told.map(({ event, action, account, count }) => [event, action, account, count]),
    [
      ['login failed', 'POST /auth/login', 'user', undefined],
      ['login refused', undefined, undefined, 1],
      ['login failed', 'POST /auth/login', undefined, undefined],
    ],
  );
  assert.doesNotMatch(JSON.stringify(server.logged), /hunter2|by-mistake/);
});

test('the client is the one behind a trusted proxy, over sockets too', async (t) => {
  const server = await startServer(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } });
  const headers = { 'X-Forwarded-For': '203.0.113.9' };
  const query = `mutation { ${createPost} }`;
  const { make, ask } = asking(server, undefined, headers);
  await make('/api/todos', { title: 'a' });
  await ask({ query });
  const socket = await connectReady(server.port, { headers });
  assert.equal((await socket.ask(subscribe('1', query))).type, 'next');
  await socket.close();
  const changes = server.logged.filter(({ event }) => event === 'change');
  assert.deepEqual(pluck(changes, 'action'), ['POST /api/todos', 'createPost', 'createPost']);
  for (const { client } of changes) assert.equal(client, '203.0.113.9');
});

test('no flood makes the log lose who did what', async (t) => {
  const program = await runProgram(t, { env: { LOG_REQUESTS: 'none' } });
  const { url } = await program.listening();
  const headers = { 'Content-Type': 'application/json' };
  const one = async (): Promise<void> => {
    for (const _ of times(100)) {
      const init = { method: 'POST', headers, body: '{"title":"a"}' };
      await (await fetch(`${url}/api/todos`, init)).arrayBuffer();
    }
  };
  await Promise.all(times(10).map(one));
  program.child.kill('SIGTERM');
  assert.equal((await program.ended()).code, 0);
  assert.equal(program.output().match(/"event":"change"/g)?.length, 1_000);
  assert.doesNotMatch(program.output(), /dropped/);
});
