/** REQUIRE_AUTH: who may change what, and who may read (R23, R36), and ways around it. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { codes } from '../support/graphql-http.ts';
import { askLogin, logIn } from '../support/login.ts';
import { connectRaw } from '../support/raw-client.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { connectByHand } from '../support/ws-clients.ts';

type Headers = Readonly<Record<string, string>>;

const jsonType = { 'Content-Type': 'application/json' };
const allPosts = '{ allPosts { id title } }';
const commentAdded = 'subscription { commentAdded { id } }';
const createPost = 'mutation { createPost(createPostInput: {title: "t", content: "c"}) }';

const start = (context: TestContext, REQUIRE_AUTH: string): Promise<TestServer> =>
  startServer(context, { env: { REQUIRE_AUTH } });

const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });

const send = (
  server: TestServer,
  [method, path, body]: readonly [string, string, unknown?],
  headers: Headers = {},
): Promise<Response> =>
  server.fetch(path, {
    method,
    headers: { ...(body === undefined ? {} : jsonType), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

const statusOf = async (...request: Parameters<typeof send>): Promise<number> => {
  const response = await send(...request);
  await response.arrayBuffer();
  return response.status;
};

async function firstId(server: TestServer, path: string, headers: Headers = {}): Promise<string> {
  const response = await send(server, ['GET', path], headers);
  return ((await response.json()) as { id: string }[])[0]?.id ?? '';
}

describe('owners', { concurrency: true }, () => {
  it('change and remove their own posts; others and anonymous clients do not', async (t) => {
    const server = await start(t, 'owners');
    const [user, admin] = [await logIn(server), await logIn(server, 'admin')].map(bearer);
    const texts = { title: 'mine', content: 'c' };
    const created = await send(server, ['POST', '/posts', texts], user);
    const own = created.headers.get('location') ?? '';
    const changes = (path: string) => [['PUT', path, texts] as const, ['DELETE', path] as const];
    const [demo] = (await (await server.fetch('/posts?limit=3')).json()) as { id: string }[];
    const others = await send(server, ['POST', '/posts', texts], admin);
    const toPublic = [
      'PATCH',
      others.headers.get('location') ?? '',
      { status: 'PUBLISHED' },
    ] as const;
    const merging = { ...admin, 'Content-Type': 'application/merge-patch+json' };
    assert.equal(await statusOf(server, toPublic, merging), 204);
    for (const path of [others.headers.get('location') ?? '', `/posts/${demo?.id ?? ''}`]) {
      if (path === own) continue;
      for (const change of changes(path)) {
        const refused = await send(server, change, user);
        const { code } = (await refused.json()) as { code: string };
        assert.deepEqual([refused.status, code], [403, 'forbidden'], path);
        const why = refused.headers.get('www-authenticate');
        assert.equal(why, 'Bearer realm="inkwell", error="insufficient_scope"');
        assert.equal(await statusOf(server, change), 401, JSON.stringify(change));
        assert.equal(await statusOf(server, change, bearer('x.y.z')), 401, JSON.stringify(change));
        // Conditions, a broken body and another case of the id are no way around.
        assert.equal(
          await statusOf(server, change, { ...user, 'If-Match': '*' }),
          403,
          JSON.stringify(change),
        );
        const [method, , ...body] = change;
        const upper = path.replace(/[a-f]/g, (letter) => letter.toUpperCase());
        const same = `/posts/${upper.split('/').at(-1) ?? ''}`;
        assert.equal(
          await statusOf(server, [method, same, ...body], user),
          403,
          JSON.stringify(change),
        );
      }
      assert.equal(await statusOf(server, ['PUT', path, { title: 1 }], user), 403, path);
    }
    assert.equal(await statusOf(server, ['PUT', '/posts/none', texts], user), 404);
    for (const change of changes(own))
      assert.equal(await statusOf(server, change, user), 204, JSON.stringify(change));
    const again = await send(server, ['POST', '/posts', texts], user);
    for (const change of changes(again.headers.get('location') ?? '')) {
      assert.equal(await statusOf(server, change, admin), 204, JSON.stringify(change));
    }
    assert.equal(await statusOf(server, ['POST', '/api/todos', { title: 'a' }], user), 201);
    assert.equal(await statusOf(server, ['GET', '/posts']), 200);
  });
});

/** Every route that reads or writes, by its method. */
async function guarded(server: TestServer, member: Headers) {
  const post = `/posts/${await firstId(server, '/posts', member)}`;
  const comment = `/comments/${await firstId(server, `${post}/comments`, member)}`;
  const todo = `/api/todos/${await firstId(server, '/api/todos', member)}`;
  const texts = { title: 't', content: 'c' };
  const reads = [
    ...'/posts /posts?limit=1 /api/multiparts /api/multiparts/abc.text /api/todos'.split(' '),
    ...'/api/articles /api/articles/1 /articles/1 /profile /graphql/schema.graphql'.split(' '),
    ...'/comments /files'.split(' '),
    post,
    `${post}/comments`,
    comment,
    todo,
  ];
  return {
    reads,
    requests: [
      ...reads.map((path) => ['GET', path] as const),
      ...reads.map((path) => ['HEAD', path] as const),
      ['POST', '/posts', texts] as const,
      ['PUT', post, texts] as const,
      ['PATCH', post, { status: 'PUBLISHED' }] as const,
      ['DELETE', post] as const,
      ['DELETE', comment] as const,
      ['PATCH', todo, { completed: true }] as const,
      ['DELETE', todo] as const,
      ['POST', `${post}/comments`, { content: 'c' }] as const,
      ['POST', '/api/multiparts/simple', {}] as const,
      ['POST', '/api/multiparts/list', {}] as const,
      ['DELETE', '/api/multiparts/abc.text'] as const,
      ['POST', '/api/todos', { title: 't' }] as const,
      ['POST', '/api/articles', { title: 't' }] as const,
      ['PATCH', '/api/articles', []] as const,
      ['PATCH', '/api/articles/1', {}] as const,
      ['DELETE', '/api/articles/1'] as const,
      ['POST', '/comments/removals', { ids: [] }] as const,
    ],
  };
}

describe('writes', { concurrency: true }, () => {
  it('need the token of any account, and reads need none', async (t) => {
    const server = await start(t, 'writes');
    const account = bearer(await logIn(server));
    for (const request of (await guarded(server, {})).requests) {
      const [method, path] = request;
      if (path === '/profile') continue; // needs one in every mode
      const isRead = method === 'GET' || method === 'HEAD';
      const name = `${method} ${path}`;
      assert.equal((await statusOf(server, request)) === 401, !isRead, name);
      // Of whichever account: the posts are not its own.
      const status = await statusOf(server, request, account);
      assert.ok(status !== 401 && status !== 403, name);
    }
  });
});

describe('members', { concurrency: true }, () => {
  it('read and write everything over REST, and nobody else reads anything', async (t) => {
    const server = await start(t, 'members');
    const token = await logIn(server);
    const member = bearer(token);
    const { reads, requests } = await guarded(server, member);
    // Each is in the cache when it is asked for without a token.
    const tags = new Map<string, string>();
    for (const path of reads) {
      const response = await send(server, ['GET', path], member);
      assert.ok(response.status < 400 || path.startsWith('/api/multiparts/'), path);
      tags.set(path, response.headers.get('etag') ?? '*');
      await response.arrayBuffer();
    }
    const wrong: readonly Headers[] = [
      {},
      { Authorization: 'Bearer' },
      { Authorization: `Basic ${Buffer.from('user:password').toString('base64')}` },
      { Authorization: token },
      bearer(`${token}x`),
      bearer(token.split('.').slice(0, 2).join('.') + '.'),
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
      const tag = tags.get(path) ?? '*';
      for (const headers of [{ 'If-None-Match': tag }, { Range: 'bytes=0-1' }, { Accept: '*/*' }]) {
        assert.equal(await statusOf(server, ['GET', path], headers), 401, path);
      }
      const added = `${path}${path.includes('?') ? '&' : '?'}access_token=${token}`;
      assert.equal(await statusOf(server, ['GET', added]), 401, added);
      // Another spelling of a path is another path, and shows nothing.
      for (const other of [`${path}/`, `/${path}`, path.replace('/p', '/%70'), `${path}%00`]) {
        const status = await statusOf(server, ['GET', other]);
        assert.ok(status === 401 || status === 404 || status === 400, `${other} ${status}`);
      }
    }
    for (const path of ['/hello', '/', '/livez', '/readyz', '/openapi.json']) {
      assert.equal(await statusOf(server, ['GET', path], { Accept: '*/*' }), 200, path);
    }
    assert.equal((await askLogin(server, 'user', 'password')).status, 200);
  });

  it('are asked for a token by each operation of GraphQL over HTTP', async (t) => {
    const server = await start(t, 'members');
    const member = bearer(await logIn(server));
    const one = ['POST', '/graphql', { query: allPosts }] as const;
    // So that the response is in the cache.
    for (let time = 0; time < 2; time += 1) {
      const response = await send(server, one, member);
      assert.match(await response.text(), /"allPosts":\[\{/, `round ${time}`);
    }
    const query = (text: string): string => `/graphql?query=${encodeURIComponent(text)}`;
    const form = new FormData();
    form.append('operations', JSON.stringify({ query: allPosts }));
    form.append('map', '{}');
    const events = { Accept: 'text/event-stream' };
    const batchOfTwo = [{ query: allPosts }, { query: '{ __typename }' }];
    for (const headers of [{}, bearer('x.y.z'), { Authorization: 'Basic x' }]) {
      for (const [at, asking] of [
        send(server, one, headers),
        send(server, one, { ...headers, Accept: 'application/graphql-response+json' }),
        send(server, ['GET', query(allPosts)], headers),
        send(server, ['GET', query('{ __schema { types { name } } }')], headers),
        send(server, ['GET', query('{ __typename }')], headers),
        send(server, ['POST', '/graphql', { query: createPost }], headers),
        send(server, ['POST', '/graphql', batchOfTwo], headers),
        send(server, one, { ...headers, ...events }),
        send(server, ['GET', query(commentAdded)], { ...headers, ...events }),
        send(server, ['POST', '/graphql', { query: commentAdded }], { ...headers, ...events }),
        server.fetch('/graphql', { method: 'POST', body: form, headers }),
      ].entries()) {
        const text = await (await asking).text();
        assert.match(text, /UNAUTHENTICATED|"status":401/, `asking ${at}`);
        assert.doesNotMatch(
          text,
          /"title":"(?!Unauthorized)|"name":|"data":\{"__typename"|:\n\n/,
          `asking ${at}`,
        );
      }
    }
    const batch = ['POST', '/graphql', [{ query: allPosts }, { query: '{' }]] as const;
    const results = (await (await send(server, batch)).json()) as unknown[];
    assert.deepEqual(results.flatMap(codes), ['UNAUTHENTICATED', 'GRAPHQL_PARSE_FAILED']);
  });

  for (const protocols of [['graphql-transport-ws'], ['graphql-ws'], []]) {
    const name = protocols[0] ?? 'no protocol';
    it(`are asked for a token by each operation of a socket (${name})`, async (t) => {
      const server = await start(t, 'members');
      const type = protocols[0] === 'graphql-transport-ws' ? 'subscribe' : 'start';
      const ask = async (query: string, payload?: unknown): Promise<string> => {
        const client = await connectByHand(server.port, { protocols });
        client.send({ type: 'connection_init', ...(payload === undefined ? {} : { payload }) });
        assert.equal((await client.next()).type, 'connection_ack');
        client.send({ id: '1', type, payload: { query } });
        const answer = JSON.stringify(await client.next());
        await client.close();
        return answer;
      };
      for (const query of [allPosts, createPost, commentAdded]) {
        assert.match(await ask(query), /"type":"error".*UNAUTHENTICATED/, query);
        assert.match(await ask(query, { Authorization: 'Bearer x' }), /UNAUTHENTICATED/, query);
      }
      const member = bearer(await logIn(server));
      assert.match(await ask(allPosts, member), /"allPosts":\[\{/);
    });
  }

  it('are told from others also on a connection that both use', async (t) => {
    const server = await start(t, 'members');
    const token = await logIn(server);
    const client = await connectRaw(t, server.port);
    const lines = (more: string): string => `GET /posts HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
    client.send(lines(`Authorization: Bearer ${token}\r\n`) + lines(''));
    assert.equal((await client.response()).status, 200);
    assert.equal((await client.response()).status, 401);
    const twice = await connectRaw(t, server.port);
    twice.send(lines(`Authorization: Bearer ${token}\r\nAuthorization: Bearer x\r\n`));
    assert.equal((await twice.response()).status, 400);
    const absolute = await connectRaw(t, server.port);
    absolute.send('GET http://a/posts HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.equal((await absolute.response()).status, 401);
  });
});
