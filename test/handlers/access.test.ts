/** REQUIRE_AUTH: who may change what, and who may read (R23, R36), and ways around it. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { codes } from '../support/graphql-http.ts';
import { askLogin, logIn } from '../support/login.ts';
import { connectRaw } from '../support/raw-client.ts';
import { type Sent, startServer, type TestServer } from '../support/server.ts';
import { connectByHand } from '../support/ws-clients.ts';

const allPosts = '{ allPosts { id title } }';
const commentAdded = 'subscription { commentAdded { id } }';
const createPost = 'mutation { createPost(createPostInput: {title: "t", content: "c"}) }';
const texts = { title: 'mine', content: 'c' };

const bearer = (token: string): Sent => ({ Authorization: `Bearer ${token}` });

type Request = readonly [method: string, path: string, body?: unknown];

const send = (server: TestServer, [method, path, body]: Request, headers: Sent = {}) =>
  body === undefined
    ? server.fetch(path, { method, headers })
    : server.send(method, path, body, headers);

async function statusOf(...request: Parameters<typeof send>): Promise<number> {
  const response = await send(...request);
  await response.arrayBuffer();
  return response.status;
}

async function start(t: TestContext, REQUIRE_AUTH: string) {
  const server = await startServer(t, { env: { REQUIRE_AUTH } });
  const token = await logIn(server);
  return { server, token, user: bearer(token) };
}

describe('owners', () => {
  it('change and remove their own posts; others and anonymous clients do not', async (t) => {
    const { server, user } = await start(t, 'owners');
    const admin = bearer(await logIn(server, 'admin'));
    const changes = (path: string): readonly Request[] => [
      ['PUT', path, texts],
      ['DELETE', path],
    ];
    const [demo] = await server.read<{ id: string }[]>('/posts?limit=1');
    const others = await server.make('/posts', texts, admin);
    const merging = { ...admin, 'Content-Type': 'application/merge-patch+json' };
    assert.equal(await statusOf(server, ['PATCH', others, { status: 'PUBLISHED' }], merging), 204);
    for (const path of [others, `/posts/${demo?.id}`]) {
      for (const change of changes(path)) {
        const refused = await send(server, change, user);
        const { code } = (await refused.json()) as { code: string };
        assert.deepEqual([refused.status, code], [403, 'forbidden'], path);
        const why = refused.headers.get('www-authenticate');
        assert.equal(why, 'Bearer realm="inkwell", error="insufficient_scope"');
        // Conditions, a broken body and another case of the id are no way around.
        const [method, , body] = change;
        const same = `/posts/${path.slice('/posts/'.length).toUpperCase()}`;
        for (const [asked, headers, status] of [
          [change, {}, 401],
          [change, bearer('x.y.z'), 401],
          [change, { ...user, 'If-Match': '*' }, 403],
          [[method, same, body], user, 403],
        ] as const) {
          assert.equal(await statusOf(server, asked, headers), status, String(asked));
        }
      }
      assert.equal(await statusOf(server, ['PUT', path, { title: 1 }], user), 403, path);
    }
    assert.equal(await statusOf(server, ['PUT', '/posts/none', texts], user), 404);
    for (const by of [user, admin]) {
      for (const change of changes(await server.make('/posts', texts, user))) {
        assert.equal(await statusOf(server, change, by), 204, change[0]);
      }
    }
    assert.equal(await statusOf(server, ['POST', '/api/todos', { title: 'a' }], user), 201);
  });
});

/** Every route that reads or writes, by its method. */
async function guarded(server: TestServer, member: Sent) {
  const first = async (path: string): Promise<string> =>
    (await server.read<{ id: string }[]>(path, member))[0]?.id ?? '';
  const post = `/posts/${await first('/posts')}`;
  const comment = `/comments/${await first(`${post}/comments`)}`;
  const todo = `/api/todos/${await first('/api/todos')}`;
  const reads = [
    ...'/posts /posts?limit=1 /api/multiparts /api/multiparts/abc.text /api/todos'.split(' '),
    ...'/api/articles /api/articles/1 /articles/1 /profile /graphql/schema.graphql'.split(' '),
    ...`/comments /files ${post} ${post}/comments ${comment} ${todo}`.split(' '),
  ];
  const requests: readonly Request[] = [
    ...reads.flatMap((path) => ['GET', 'HEAD'].map((method) => [method, path] as const)),
    ['POST', '/posts', texts],
    ['PUT', post, texts],
    ['PATCH', post, { status: 'PUBLISHED' }],
    ['DELETE', post],
    ['DELETE', comment],
    ['PATCH', todo, { completed: true }],
    ['DELETE', todo],
    ['POST', `${post}/comments`, { content: 'c' }],
    ['POST', '/api/multiparts/simple', {}],
    ['POST', '/api/multiparts/list', {}],
    ['DELETE', '/api/multiparts/abc.text'],
    ['POST', '/api/todos', { title: 't' }],
    ['POST', '/api/articles', { title: 't' }],
    ['PATCH', '/api/articles', []],
    ['PATCH', '/api/articles/1', {}],
    ['DELETE', '/api/articles/1'],
    ['POST', '/comments/removals', { ids: [] }],
  ];
  return { reads, requests };
}

describe('writes', () => {
  it('need the token of any account, and reads need none', async (t) => {
    const { server, user } = await start(t, 'writes');
    for (const request of (await guarded(server, {})).requests) {
      const [method, path] = request;
      if (path === '/profile') continue; // needs one in every mode
      const isRead = method === 'GET' || method === 'HEAD';
      const name = `${method} ${path}`;
      assert.equal((await statusOf(server, request)) === 401, !isRead, name);
      // Of whichever account: the posts are not its own.
      const status = await statusOf(server, request, user);
      assert.ok(status !== 401 && status !== 403, name);
    }
  });
});

describe('members', () => {
  it('read and write everything over REST, and nobody else reads anything', async (t) => {
    const { server, token, user } = await start(t, 'members');
    const { reads, requests } = await guarded(server, user);
    // Each is in the cache when it is asked for without a token.
    const tags = new Map<string, string>();
    for (const path of reads) {
      const response = await send(server, ['GET', path], user);
      assert.ok(response.status < 400 || path.startsWith('/api/multiparts/'), path);
      tags.set(path, response.headers.get('etag') ?? '*');
      await response.arrayBuffer();
    }
    const wrong: readonly Sent[] = [
      {},
      { Authorization: 'Bearer' },
      { Authorization: `Basic ${Buffer.from('user:password').toString('base64')}` },
      { Authorization: token },
      bearer(`${token}x`),
      { Cookie: `access_token=${token}` },
      { 'X-Authorization': `Bearer ${token}` },
      { 'X-Forwarded-For': '127.0.0.1', Forwarded: 'for=127.0.0.1' },
    ];
    for (const request of requests) {
      for (const headers of wrong) {
        assert.equal(await statusOf(server, request, headers), 401, request[1]);
      }
    }
    for (const path of reads) {
      for (const headers of [{ 'If-None-Match': tags.get(path) ?? '*' }, { Range: 'bytes=0-1' }]) {
        assert.equal(await statusOf(server, ['GET', path], headers), 401, path);
      }
      const added = `${path}${path.includes('?') ? '&' : '?'}access_token=${token}`;
      assert.equal(await statusOf(server, ['GET', added]), 401, added);
      // Another spelling of a path is another path, and shows nothing.
      for (const other of [`${path}/`, `/${path}`, path.replace('/p', '/%70'), `${path}%00`]) {
        const status = await statusOf(server, ['GET', other]);
        assert.ok([400, 401, 404].includes(status), `${other} ${status}`);
      }
    }
    for (const path of ['/hello', '/', '/livez', '/readyz', '/openapi.json']) {
      assert.equal(await statusOf(server, ['GET', path]), 200, path);
    }
    assert.equal((await askLogin(server, 'user', 'password')).status, 200);
  });

  it('are asked for a token by each operation of GraphQL over HTTP', async (t) => {
    const { server, user } = await start(t, 'members');
    const one: Request = ['POST', '/graphql', { query: allPosts }];
    // So that the response is in the cache.
    for (const _ of [1, 2]) {
      assert.match(await (await send(server, one, user)).text(), /"allPosts":\[\{/);
    }
    const get = (query: string): Request => ['GET', `/graphql?query=${encodeURIComponent(query)}`];
    const form = new FormData();
    form.append('operations', JSON.stringify({ query: allPosts }));
    form.append('map', '{}');
    const events = { Accept: 'text/event-stream' };
    const requests: readonly (readonly [Request, Sent?])[] = [
      [one],
      [one, { Accept: 'application/graphql-response+json' }],
      [get(allPosts)],
      [get('{ __schema { types { name } } }')],
      [get('{ __typename }')],
      [['POST', '/graphql', { query: createPost }]],
      [['POST', '/graphql', [{ query: allPosts }, { query: '{ __typename }' }]]],
      [one, events],
      [get(commentAdded), events],
      [['POST', '/graphql', { query: commentAdded }], events],
    ];
    for (const headers of [{}, bearer('x.y.z'), { Authorization: 'Basic x' }]) {
      for (const asking of [
        ...requests.map(([asked, more]) => send(server, asked, { ...headers, ...more })),
        server.fetch('/graphql', { method: 'POST', body: form, headers }),
      ]) {
        const text = await (await asking).text();
        assert.match(text, /UNAUTHENTICATED|"status":401/);
        assert.doesNotMatch(text, /"title":"(?!Unauth)|"name":|"data":\{"__typename"|:\n\n/);
      }
    }
    const batch = await send(server, ['POST', '/graphql', [{ query: allPosts }, { query: '{' }]]);
    const found = ((await batch.json()) as unknown[]).flatMap(codes);
    assert.deepEqual(found, ['UNAUTHENTICATED', 'GRAPHQL_PARSE_FAILED']);
  });

  it('are asked for a token by each operation of a socket', async (t) => {
    const { server, user } = await start(t, 'members');
    for (const protocols of [['graphql-transport-ws'], ['graphql-ws'], []]) {
      const type = protocols[0] === 'graphql-transport-ws' ? 'subscribe' : 'start';
      const ask = async (query: string, payload: object = {}): Promise<string> => {
        const client = await connectByHand(server.port, { protocols });
        const { type: told } = await client.ask({ type: 'connection_init', payload });
        assert.equal(told, 'connection_ack');
        const answer = JSON.stringify(await client.ask({ id: '1', type, payload: { query } }));
        await client.close();
        return answer;
      };
      for (const query of [allPosts, createPost, commentAdded]) {
        assert.match(await ask(query), /"type":"error".*UNAUTHENTICATED/, query);
        assert.match(await ask(query, { Authorization: 'Bearer x' }), /UNAUTHENTICATED/, query);
      }
      assert.match(await ask(allPosts, user), /"allPosts":\[\{/);
    }
  });

  it('are told from others also on a connection that both use', async (t) => {
    const { server, token } = await start(t, 'members');
    const lines = (...more: readonly string[]): string =>
      ['GET /posts HTTP/1.1', 'Host: a', ...more, '', ''].join('\r\n');
    const own = `Authorization: Bearer ${token}`;
    for (const [sent, ...statuses] of [
      [lines(own) + lines(), 200, 401],
      [lines(own, 'Authorization: Bearer x'), 400],
      [lines().replace('/posts', 'http://a/posts'), 401],
    ] as const) {
      const client = await connectRaw(t, server.port);
      client.send(sent);
      for (const status of statuses) assert.equal((await client.response()).status, status);
    }
  });
});
