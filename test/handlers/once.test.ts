/** R40 over REST: what is sent again under its key is not done again. Each store: its contract. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { logIn } from '../support/login.ts';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { skipPostgres } from '../support/postgres.ts';
import { ask as rawAsk, connectRaw } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';
import { openSession } from '../support/session.ts';
import { database } from '../support/shared-postgres.ts';
import { createDirectory } from '../support/uploads.ts';

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

const [json, patch] = ['application/json', 'application/json-patch+json'];
const merge = 'application/merge-patch+json';

const asJson = (method: string, path: string, value: unknown): Sent => {
  return { method, path, type: json, body: JSON.stringify(value) };
};
const upload = (name: string, content = 'text', path = '/api/multiparts/simple'): Sent => {
  const body = multipartBody([part('part', content, { fileName: name, type: 'text/plain' })]);
  return { method: 'POST', path, type: multipartType, body };
};

/** What a client sees. `code`: that of an error of REST, or of one of GraphQL. */
async function ask(url: string, { method, path, type, body, headers = {} }: Sent, key?: string) {
  const all = {
    ...headers,
    ...(type !== undefined && { 'Content-Type': type }),
    ...(key !== undefined && { 'Idempotency-Key': key }),
  };
  const response = await fetch(url + path, { method, headers: all, ...(body && { body }) });
  const replayed = response.headers.get('idempotency-replayed') === 'true';
  const [location, text] = [response.headers.get('location'), await response.text()];
  const code = /"code":"([^"]+)"/.exec(text)?.[1];
  return { status: response.status, replayed, location, text, code };
}

const textOf = async (url: string, path: string): Promise<string> =>
  (await ask(url, { method: 'GET', path })).text;

async function create(url: string, path: string): Promise<string> {
  const { location } = await ask(url, asJson('POST', path, { title: 'a', content: 'b' }));
  const created = new URL(location ?? assert.fail(path), url).pathname;
  return created.replace(/^\/articles/, '/api/articles');
}

const titled = (title: string) => ({ title });
const post = (title: string) => ({ title, content: 'text' });

/** Of each kind a write, and another one of its kind. That each route has them: `headers.test.ts`. */
async function writesOf(url: string): Promise<readonly (readonly [Sent, Sent])[]> {
  const [path, comments] = [await create(url, '/posts'), `${await create(url, '/posts')}/comments`];
  const made = [await create(url, comments), await create(url, comments)];
  const [removed = '', kept = ''] = made;
  await ask(url, upload('gone.txt'));
  const retitle = (value: string): Sent => {
    const operation = { op: 'replace', path: '/0/title', value };
    return { ...asJson('PATCH', '/api/articles', [operation]), type: patch };
  };
  const [simple, list] = ['/api/multiparts/simple', '/api/multiparts/list'];
  return [
    [asJson('POST', '/posts', post('b')), asJson('POST', '/posts', post('c'))],
    [asJson('PUT', path, post('b')), asJson('PUT', path, post('c'))],
    [retitle('b'), retitle('c')],
    [
      { method: 'DELETE', path: removed },
      { method: 'DELETE', path: kept },
    ],
    [upload('a.txt', 'b', simple), upload('b.txt', 'b', simple)],
    [upload('a.txt', 'c', list), upload('b.txt', 'c', list)],
    [
      { method: 'DELETE', path: '/api/multiparts/gone.txt' },
      { method: 'DELETE', path: '/api/multiparts/a.txt' },
    ],
  ];
}

describe('a write under a key', () => {
  it('is done once, whatever was written meanwhile, and answered as the first time', async (t) => {
    const { url } = await startServer(t);
    const writes = await writesOf(url);
    const stateOf = async (): Promise<string> => {
      const paths = ['/posts', '/comments', '/api/articles', '/files'];
      return (await Promise.all(paths.map((path) => textOf(url, path)))).join();
    };
    const first: Awaited<ReturnType<typeof ask>>[] = [];
    for (const [at, [sent]] of writes.entries()) {
      const before = await stateOf();
      const done = await ask(url, sent, `${at}`);
      assert.ok(done.status < 300 && !done.replayed, `${at}: ${done.status}`);
      assert.notEqual(await stateOf(), before, `${at}`);
      first.push(done);
    }
    const state = await stateOf();
    for (const [at, [sent, other]] of writes.entries()) {
      assert.deepEqual(await ask(url, sent, `${at}`), { ...first[at], replayed: true });
      const { status, code } = await ask(url, other, `${at}`);
      assert.deepEqual([status, code], [422, 'idempotency_key_reused'], `${at}`);
    }
    assert.equal(await stateOf(), state);
  });

  it('is another request by its method, path, media type, body or door', async (t) => {
    const { url } = await startServer(t);
    const sent = asJson('PUT', await create(url, '/posts'), post('a'));
    assert.equal((await ask(url, sent, 'k')).status, 204);
    for (const change of [
      { method: 'DELETE' },
      { path: await create(url, '/posts') },
      { type: 'application/ld+json' },
      { body: '{"title":"a","content":"c"}' },
      upload('a.txt'),
    ]) {
      const { code } = await ask(url, { ...sent, ...change }, 'k');
      assert.equal(code, 'idempotency_key_reused', JSON.stringify(change));
    }
    assert.equal((await ask(url, createByGraphql, 'k')).code, 'BAD_USER_INPUT');
    assert.equal((await ask(url, sent, 'k')).replayed, true);
  });

  it('with If-Match is answered 204 again, although the tag has changed', async (t) => {
    const { url } = await startServer(t);
    const path = await create(url, '/posts');
    const patched = { ...asJson('PATCH', path, titled('b')), type: merge };
    for (const [change, status] of [
      [patched, 412],
      [{ method: 'DELETE', path }, 404],
    ] as const) {
      const tag = (await fetch(url + path)).headers.get('etag') ?? '';
      const sent = { ...change, headers: { 'If-Match': tag } };
      const first = await ask(url, sent, sent.method);
      assert.equal(first.status, 204);
      assert.deepEqual(await ask(url, sent, sent.method), { ...first, replayed: true });
      assert.equal((await ask(url, sent)).status, status);
    }
  });

  it('that stores nothing uses up no key', async (t) => {
    const server = await startServer(t, { env: { REQUIRE_AUTH: 'writes' } });
    const headers = { authorization: `Bearer ${await logIn(server)}` };
    const todo = asJson('POST', '/api/todos', titled('a'));
    const { location } = await ask(server.url, { ...todo, headers });
    const path = new URL(location ?? '').pathname;
    const sent = { ...asJson('PATCH', path, titled('b')), type: merge, headers };
    for (const [change, status] of [
      [{ headers: {} }, 401],
      [{ body: '{"title":7}' }, 422],
      [{ path: `/api/todos/${randomUUID()}` }, 404],
      [{ headers: { ...headers, 'If-Match': '"other"' } }, 412],
    ] as const) {
      assert.equal((await ask(server.url, { ...sent, ...change }, 'k')).status, status);
    }
    const { status, replayed } = await ask(server.url, sent, 'k');
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
    const expected = first.map((one) => ({ ...one, replayed: true }));
    assert.deepEqual(again, expected);
    assert.equal((await send({ authorization: 'Bearer no.to.ken' })).code, 'invalid_token');
  });
});

const mutation = 'mutation { createPost(createPostInput: {title: "a", content: "b"}) }';
const createByGraphql = asJson('POST', '/graphql', { query: mutation });

describe('a key', () => {
  it('is the same, bare or quoted', async (t) => {
    const { url } = await startServer(t);
    const todo = asJson('POST', '/api/todos', titled('a'));
    for (const [bare, quoted] of [
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
    const client = await connectRaw(t, startServer(t));
    const lines = ['POST /api/multiparts/simple HTTP/1.1', 'Host: a', 'Idempotency-Key: a b'];
    const head = [`Content-Type: ${multipartType}`, 'Content-Length: 1000000'];
    client.send([...lines, ...head, 'Expect: 100-continue']);
    assert.equal((await client.response()).status, 400);
  });

  it('whose first is under way on another node is refused', { skip: skipPostgres }, async (t) => {
    const storeUrl = await database.clearedDatabase();
    const env = { STORE_URL: storeUrl, STORE_TIMEOUT_SECONDS: '1' };
    const { url } = await startServer(t, { env: { ...env, UPLOAD_DIR: await createDirectory(t) } });
    const session = openSession(t, storeUrl);
    for (const sent of [asJson('POST', '/posts', post('a')), createByGraphql]) {
      await ask(url, sent, sent.path);
      // As if the first were not committed yet: its key alone.
      type Kept = Readonly<Record<'key' | 'print' | 'result', string>>;
      const [kept] = await session<Kept>`DELETE FROM inkwell.requests RETURNING key, print, result`;
      const { key, print, result } = kept ?? assert.fail();
      await session`BEGIN`;
      await session`INSERT INTO inkwell.requests (key, print, result)
        VALUES (${key}, ${print}, ${result})`;
      const { text } = await ask(url, sent, sent.path);
      assert.match(text, /"code":"request_in_progress"|is under way/, sent.path);
      await session`COMMIT`;
      assert.equal((await ask(url, sent, sent.path)).replayed, true);
      await session`DELETE FROM inkwell.requests`;
    }
  });
});
