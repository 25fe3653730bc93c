/** R40 over REST: what is sent again under its key is not done again. Each store: its contract. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { logIn } from '../support/login.ts';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { skipPostgres } from '../support/postgres.ts';
import { ask as rawAsk, connectRaw } from '../support/raw-client.ts';
import { type Sent as Headers, startServer } from '../support/server.ts';
import { openSession } from '../support/session.ts';
import { database } from '../support/shared-postgres.ts';
import { createDirectory } from '../support/uploads.ts';

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly body?: string | Buffer;
  readonly headers?: Headers;
}

const json = 'application/json';
const merge = 'application/merge-patch+json';

const asJson = (method: string, path: string, value: unknown): Sent => {
  return { method, path, type: json, body: JSON.stringify(value) };
};
const upload = (name: string, path = '/api/multiparts/simple'): Sent => {
  const body = multipartBody([part('part', 'text', { fileName: name, type: 'text/plain' })]);
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

const texts = (title: string) => ({ title, content: 'text' });
const todo = asJson('POST', '/api/todos', { title: 'a' });
const mutation = 'mutation { createPost(createPostInput: {title: "a", content: "b"}) }';
const createByGraphql = asJson('POST', '/graphql', { query: mutation });

describe('a write under a key', () => {
  it('is done once, whatever was written meanwhile, and answered as the first time', async (t) => {
    const { url, make } = await startServer(t);
    const comments = `${await make('/posts', texts('a'))}/comments`;
    const [removed, kept] = [await make(comments, texts('a')), await make(comments, texts('b'))];
    const files = '/api/multiparts';
    await ask(url, upload('gone.txt'));
    const remove = (path: string): Sent => ({ method: 'DELETE', path });
    /** Of each kind a write, and another. That each route has them: `headers.test.ts`. */
    const writes: readonly (readonly [Sent, Sent])[] = [
      [asJson('POST', '/posts', texts('b')), asJson('POST', '/posts', texts('c'))],
      [remove(removed), remove(kept)],
      [upload('a.txt'), upload('b.txt')],
      [upload('c.txt', `${files}/list`), upload('b.txt', `${files}/list`)],
      [remove(`${files}/gone.txt`), remove(`${files}/a.txt`)],
    ];
    const stateOf = async (): Promise<string> => {
      const paths = ['/posts', '/comments', '/files'];
      return (
        await Promise.all(paths.map(async (each) => (await fetch(url + each)).text()))
      ).join();
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
    const { url, make } = await startServer(t);
    const path = await make('/posts', texts('a'));
    const tag = (await fetch(url + path)).headers.get('etag') ?? '';
    const sent = { ...asJson('PUT', path, texts('b')), headers: { 'If-Match': tag } };
    const first = await ask(url, sent, 'k');
    assert.equal(first.status, 204);
    for (const change of [
      { method: 'DELETE' },
      { path: await make('/posts', texts('a')) },
      { type: 'application/ld+json' },
      { body: '{"title":"a","content":"c"}' },
      upload('a.txt'),
    ]) {
      const { code } = await ask(url, { ...sent, ...change }, 'k');
      assert.equal(code, 'idempotency_key_reused', JSON.stringify(change));
    }
    assert.equal((await ask(url, createByGraphql, 'k')).code, 'BAD_USER_INPUT');
    // Although the tag has changed.
    assert.deepEqual(await ask(url, sent, 'k'), { ...first, replayed: true });
    assert.equal((await ask(url, sent)).status, 412);
  });

  it('that stores nothing uses up no key', async (t) => {
    const { url, ...server } = await startServer(t, { env: { REQUIRE_AUTH: 'writes' } });
    const headers = { authorization: `Bearer ${await logIn({ url })}` };
    const path = await server.make('/api/todos', { title: 'a' }, headers);
    const sent = { ...asJson('PATCH', path, { title: 'b' }), type: merge, headers };
    for (const [change, status] of [
      [{ headers: {} }, 401],
      [{ body: '{"title":7}' }, 422],
      [{ path: `/api/todos/${randomUUID()}` }, 404],
      [{ headers: { ...headers, 'If-Match': '"other"' } }, 412],
      [{}, 204],
    ] as const) {
      const found = await ask(url, { ...sent, ...change }, 'k');
      assert.deepEqual([found.status, found.replayed], [status, false]);
    }
  });

  it('belongs to the account of its token, or to all who send none', async (t) => {
    const server = await startServer(t);
    const tokens = [await logIn(server), await logIn(server, 'admin')];
    const who = [...tokens.map((token) => ({ authorization: `Bearer ${token}` })), {}];
    const send = (headers: Headers) => ask(server.url, { ...todo, headers }, 'k');
    const first = await Promise.all(who.map(send));
    assert.equal(new Set(first.map(({ location }) => location)).size, who.length);
    const expected = first.map((one) => ({ ...one, replayed: true }));
    assert.deepEqual(await Promise.all(who.map(send)), expected);
    assert.equal((await send({ authorization: 'Bearer no.to.ken' })).code, 'invalid_token');
  });
});

describe('a key', () => {
  it('is the same, bare or quoted; of any other form it is refused', async (t) => {
    const { url, port } = await startServer(t);
    for (const [bare, quoted] of [
      ['!~', '"!~"'],
      ['a"b', String.raw`"a\"b"`],
      [String.raw`a\b`, String.raw`"a\\b"`],
      ['k'.repeat(255), `"${'k'.repeat(255)}"`],
    ] as const) {
      const first = await ask(url, todo, bare);
      assert.deepEqual(await ask(url, todo, quoted), { ...first, replayed: true }, bare);
    }
    const before = await (await fetch(`${url}/api/todos`)).text();
    const wrong = ['', '""', '"', '"a', 'a b', '"a b"', '"a"b', '"a";b=c', String.raw`"a\b"`];
    for (const key of [...wrong, 'k'.repeat(256), 'a\r\nIdempotency-Key: a', 'é']) {
      const head = `Host: a\r\nContent-Type: ${json}\r\nContent-Length: 13\r\nIdempotency-Key: ${key}`;
      const sent = `POST /api/todos HTTP/1.1\r\n${head}\r\n\r\n{"title":"a"}`;
      const { status, body } = await rawAsk(t, port, sent);
      assert.equal(status, 400, key);
      assert.match(body.toString(), /"code":"invalid_idempotency_key"/, key);
    }
    assert.equal(await (await fetch(`${url}/api/todos`)).text(), before);
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
    for (const sent of [todo, createByGraphql]) {
      await ask(url, sent, 'k');
      // As if the first were not committed yet: its key alone.
      type Kept = Readonly<Record<'key' | 'print' | 'result', string>>;
      const [kept] = await session<Kept>`DELETE FROM inkwell.requests RETURNING key, print, result`;
      const { key, print, result } = kept ?? assert.fail();
      await session`BEGIN`;
      await session`INSERT INTO inkwell.requests (key, print, result)
        VALUES (${key}, ${print}, ${result})`;
      const { text } = await ask(url, sent, 'k');
      assert.match(text, /"code":"request_in_progress"|is under way/, sent.path);
      await session`COMMIT`;
      assert.equal((await ask(url, sent, 'k')).replayed, true);
      await session`DELETE FROM inkwell.requests`;
    }
  });
});
