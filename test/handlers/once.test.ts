/** R40 over REST: what is sent again under its key is not done again. Each store: its contract. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { logIn } from '../support/login.ts';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { skipPostgres } from '../support/postgres.ts';
import { ask as rawAsk, connectRaw } from '../support/raw-client.ts';
import { type Ending, startServer } from '../support/server.ts';
import { openSession } from '../support/session.ts';
import { database } from '../support/shared-postgres.ts';

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly type?: string | undefined;
  readonly body?: string | Buffer | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

const [json, patch] = ['application/json', 'application/json-patch+json'];
const merge = 'application/merge-patch+json';

const asJson = (method: string, path: string, value: unknown): Sent => {
  return { method, path, type: json, body: JSON.stringify(value) };
};
const patchOf = (path: string, value: object): Sent => {
  return { ...asJson('PATCH', path, value), type: merge };
};
const upload = (name: string, content = 'text', path = '/api/multiparts/simple'): Sent => {
  const body = multipartBody([part('part', content, { fileName: name, type: 'text/plain' })]);
  return { method: 'POST', path, type: multipartType, body };
};

/** What a client sees. `code`: that of an error of REST, or the message of one of GraphQL. */
async function ask(url: string, { method, path, type, body, ...sent }: Sent, key?: string) {
  const headers = new Headers(sent.headers);
  if (type !== undefined) headers.set('Content-Type', type);
  if (key !== undefined) headers.set('Idempotency-Key', key);
  const init = { method, headers, ...(body !== undefined && { body }) };
  const response = await fetch(`${url}${path}`, init);
  const replayed = response.headers.get('idempotency-replayed') === 'true';
  const [location, text] = [response.headers.get('location'), await response.text()];
  const code = /"(?:code|message)":"([^"]+)"/.exec(text)?.[1];
  return { status: response.status, replayed, location, text, code };
}

const textOf = async (url: string, path: string): Promise<string> =>
  (await ask(url, { method: 'GET', path })).text;

async function create(url: string, path: string): Promise<string> {
  const { location } = await ask(url, asJson('POST', path, { title: 'a', content: 'b' }));
  const created = new URL(location ?? assert.fail(path), url).pathname;
  return created.replace(/^\/articles/, '/api/articles');
}
async function createFile(url: string): Promise<string> {
  const name = `${randomUUID()}.txt`;
  await ask(url, upload(name));
  return `/api/multiparts/${name}`;
}

const at = (path: string) => () => path;
const newOf = (path: string) => (url: string) => create(url, path);
const comments = async (url: string): Promise<string> => `${await create(url, '/posts')}/comments`;
const titled = (title: string) => ({ title });
const post = (title: string) => ({ title, content: 'text' });
const replacing = (path: string) => (value: string) => [{ op: 'replace', path, value }];

type Route = readonly [
  method: string,
  path: (url: string) => string | Promise<string>,
  bodyOf?: (text: string) => unknown,
  type?: string,
];
const routes: Readonly<Record<string, Route>> = {
  'POST /posts': ['POST', at('/posts'), post],
  'PUT /posts/{id}': ['PUT', newOf('/posts'), post],
  'PATCH /posts/{id}': ['PATCH', newOf('/posts'), titled, merge],
  'DELETE /posts/{id}': ['DELETE', newOf('/posts')],
  'POST /posts/{id}/comments': ['POST', comments, (content) => ({ content })],
  'DELETE /comments/{id}': ['DELETE', async (url) => create(url, await comments(url))],
  'POST /api/todos': ['POST', at('/api/todos'), titled],
  'PATCH /api/todos/{id}': ['PATCH', newOf('/api/todos'), titled, merge],
  'DELETE /api/todos/{id}': ['DELETE', newOf('/api/todos')],
  'POST /api/articles': ['POST', at('/api/articles'), titled],
  'PATCH /api/articles': ['PATCH', at('/api/articles'), replacing('/0/title'), patch],
  'PATCH /api/articles/{id}': ['PATCH', newOf('/api/articles'), replacing('/title'), patch],
  'POST /api/multiparts/simple': ['POST', at('/api/multiparts/simple')],
  'POST /api/multiparts/list': ['POST', at('/api/multiparts/list')],
  'DELETE /api/multiparts/{name}': ['DELETE', createFile],
};

/** A request, another one of the same kind, what somebody does in between, and where all show. */
async function asksOf(url: string, [method, pathOf, bodyOf, type = json]: Route) {
  const path = await pathOf(url);
  if (bodyOf !== undefined) {
    const of = (text: string): Sent => ({ ...asJson(method, path, bodyOf(text)), type });
    return { sent: of('first'), other: of('other'), between: of('between'), state: path };
  }
  if (method === 'DELETE') {
    const [sent, other] = [
      { method, path },
      { method, path: await pathOf(url) },
    ];
    return { sent, other, between: undefined, state: path };
  }
  const of = (name: string, content = 'first'): Sent => upload(name, content, path);
  const state = '/api/multiparts/a.txt';
  return { sent: of('a.txt'), other: of('b.txt'), between: of('a.txt', 'between'), state };
}

describe('a write under a key', () => {
  for (const [name, route] of Object.entries(routes)) {
    it(`is done once: ${name}`, async (t) => {
      const { url } = await startServer(t);
      await create(url, '/api/articles');
      const { sent, other, between, state } = await asksOf(url, route);
      const key = randomUUID();
      const first = await ask(url, sent, key);
      assert.ok(first.status < 300 && !first.replayed, `${first.status}`);
      if (between !== undefined) assert.equal((await ask(url, between)).replayed, false);
      const before = await textOf(url, state);
      assert.deepEqual(await ask(url, sent, key), { ...first, replayed: true });
      const { status, code } = await ask(url, other, key);
      assert.deepEqual([status, code], [422, 'idempotency_key_reused']);
      assert.equal(await textOf(url, state), before);
      // Without a key it is another write.
      assert.equal((await ask(url, sent)).replayed, false);
      if (between !== undefined) assert.notEqual(await textOf(url, state), before);
    });
  }

  it('is another request by its method, path, media type or body', async (t) => {
    const { url } = await startServer(t);
    const sent = asJson('PUT', await create(url, '/posts'), post('a'));
    assert.equal((await ask(url, sent, 'k')).status, 204);
    for (const change of [
      { method: 'DELETE' },
      { path: await create(url, '/posts') },
      { type: 'application/ld+json' },
      { body: '{"title":"a","content":"c"}' },
    ]) {
      const { code } = await ask(url, { ...sent, ...change }, 'k');
      assert.equal(code, 'idempotency_key_reused', JSON.stringify(change));
    }
  });

  it('with If-Match is answered 204 again, although the tag has changed', async (t) => {
    const { url } = await startServer(t);
    const path = await create(url, '/posts');
    for (const change of [patchOf(path, titled('b')), { method: 'DELETE', path }]) {
      const tag = (await fetch(`${url}${path}`)).headers.get('etag') ?? '';
      const sent = { ...change, headers: { 'If-Match': tag } };
      const first = await ask(url, sent, sent.method);
      assert.equal(first.status, 204);
      assert.deepEqual(await ask(url, sent, sent.method), { ...first, replayed: true });
      assert.equal((await ask(url, sent)).status, sent.method === 'PATCH' ? 412 : 404);
    }
  });

  it('that stores nothing uses up no key', async (t) => {
    const { url } = await startServer(t);
    const change = patchOf(await create(url, '/api/todos'), titled('b'));
    const missing = { ...change, path: `/api/todos/${randomUUID()}` };
    const invalid = asJson('POST', '/api/todos', { title: 7 });
    assert.equal((await ask(url, invalid, 'k')).status, 422);
    assert.equal((await ask(url, missing, 'k')).status, 404);
    const other = { ...change, headers: { 'If-Match': '"other"' } };
    assert.equal((await ask(url, other, 'k')).status, 412);
    const { status, replayed } = await ask(url, change, 'k');
    assert.deepEqual([status, replayed], [204, false]);
  });

  it('belongs to the account of its token, or to all who send none', async (t) => {
    const server = await startServer(t);
    const tokens = [await logIn(server), await logIn(server, 'admin')];
    const who = [...tokens.map((token) => ({ authorization: `Bearer ${token}` })), {}];
    const send = (headers: Readonly<Record<string, string>>) =>
      ask(server.url, { ...asJson('POST', '/api/todos', titled('a')), headers }, 'k');
    const first = await Promise.all(who.map(send));
    assert.equal(new Set(first.map(({ location }) => location)).size, who.length);
    const again = await Promise.all(who.map(send));
    assert.deepEqual(
      again,
      first.map((one) => ({ ...one, replayed: true })),
    );
    assert.equal((await send({ authorization: 'Bearer no.to.ken' })).code, 'invalid_token');
  });
});

describe('a key', () => {
  const todo = asJson('POST', '/api/todos', titled('a'));

  it('is the same, bare or quoted', async (t) => {
    const { url } = await startServer(t);
    for (const [bare, quoted] of [
      ['8e03978e-40d5', '"8e03978e-40d5"'],
      ['!~', '"!~"'],
      ['a"b', String.raw`"a\"b"`],
      [String.raw`a\b`, String.raw`"a\\b"`],
      ['k'.repeat(255), `"${'k'.repeat(255)}"`],
    ] as const) {
      const first = await ask(url, todo, bare);
      assert.deepEqual(await ask(url, todo, quoted), { ...first, replayed: true }, bare);
    }
  });

  it('of any other form is refused, and nothing is stored', async (t) => {
    const { url, port } = await startServer(t);
    const before = await textOf(url, '/api/todos');
    const texts = ['', '""', '"', '"a', 'a b', '"a b"', '"a"b', '"a";b=c', String.raw`"a\b"`];
    for (const key of [...texts, 'k'.repeat(256), 'a\r\nIdempotency-Key: a', 'é']) {
      const head = `Host: a\r\nContent-Type: ${json}\r\nContent-Length: 13\r\nIdempotency-Key: ${key}`;
      const sent = `POST /api/todos HTTP/1.1\r\n${head}\r\n\r\n{"title":"a"}`;
      const { status, body } = await rawAsk(t, port, sent);
      assert.equal(status, 400, key);
      assert.match(body.toString(), /"code":"invalid_idempotency_key"/, key);
    }
    assert.equal(await textOf(url, '/api/todos'), before);
  });

  it('is refused before the files of an upload come', async (t) => {
    const { port } = await startServer(t);
    const client = await connectRaw(t, port);
    const lines = ['POST /api/multiparts/simple HTTP/1.1', 'Host: a', 'Idempotency-Key: a b'];
    const head = [`Content-Type: ${multipartType}`, 'Content-Length: 1000000'];
    client.send([...lines, ...head, 'Expect: 100-continue']);
    assert.equal((await client.response()).status, 400);
  });

  it('counts for nothing in reads and logins, and none is used up without a token', async (t) => {
    const server = await startServer(t, { env: { REQUIRE_AUTH: 'writes' } });
    const { url } = server;
    for (const path of ['/posts', '/api/todos', '/hello', '/graphql?query={__typename}'])
      assert.equal((await ask(url, { method: 'GET', path }, 'a b')).status, 200, path);
    const login = { username: 'user', password: 'password' };
    assert.equal((await ask(url, asJson('POST', '/auth/login', login), 'a b')).status, 200);
    assert.equal((await ask(url, todo, 'k')).status, 401);
    const headers = { authorization: `Bearer ${await logIn(server)}` };
    const { status, replayed } = await ask(url, { ...todo, headers }, 'k');
    assert.deepEqual([status, replayed], [201, false]);
  });
});

/** Files that last as long as the records, so that both are in one store. */
async function start(context: Ending, env: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-door-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  return startServer(context, { env: { ...env, UPLOAD_DIR: folder } });
}

const mutation = 'mutation { createPost(createPostInput: {title: "a", content: "b"}) }';
const doors = [
  asJson('POST', '/posts', post('a')),
  asJson('POST', '/graphql', { query: mutation }),
  upload('a.txt'),
];

test('a key that was used at one door is refused at another', async (t) => {
  const { url } = await start(t);
  for (const [index, sent] of doors.entries()) {
    const [key, other] = [`${index}`, doors.at(index - 1) ?? assert.fail()];
    const first = await ask(url, sent, key);
    const { code = '' } = await ask(url, other, key);
    assert.match(code, /^idempotency_key_reused$|was used for another request/, other.path);
    assert.deepEqual(await ask(url, sent, key), { ...first, replayed: true });
  }
});

test('a key whose first is under way on another node', { skip: skipPostgres }, async (t) => {
  const storeUrl = await database.clearedDatabase();
  const { url } = await start(t, { STORE_URL: storeUrl, STORE_TIMEOUT_SECONDS: '1' });
  const session = openSession(t, storeUrl);
  for (const sent of doors.slice(0, 2)) {
    await ask(url, sent, sent.path);
    // As if the first were not committed yet: its key alone.
    type Kept = Readonly<Record<'key' | 'print' | 'result', string>>;
    const [kept] = await session<Kept>`DELETE FROM inkwell.requests RETURNING key, print, result`;
    const { key, print, result } = kept ?? assert.fail();
    await session`BEGIN`;
    await session`INSERT INTO inkwell.requests (key, print, result)
      VALUES (${key}, ${print}, ${result})`;
    const { code = '' } = await ask(url, sent, sent.path);
    assert.match(code, /^request_in_progress$|is under way/, sent.path);
    await session`COMMIT`;
    assert.equal((await ask(url, sent, sent.path)).replayed, true);
    await session`DELETE FROM inkwell.requests`;
  }
});
