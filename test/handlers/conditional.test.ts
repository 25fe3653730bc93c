/** Requests that depend on what the client has seen (RFC 9110 §13), over sockets. */

import assert from 'node:assert/strict';
import { describe, it, test, type TestContext } from 'node:test';
import { toConditional } from '../../dist/http/etag.js';
import { times } from '../support/lists.ts';
import { type Sent, startServer, type TestServer } from '../support/server.ts';
import { inMemory, type StorePlace, stores } from '../support/stores.ts';

async function tagOf(server: TestServer, path: string): Promise<string> {
  const response = await server.fetch(path);
  await response.text();
  const tag = response.headers.get('etag') ?? '';
  assert.match(tag, /^"[\w-]+"$/, path);
  return tag;
}

async function change(
  server: TestServer,
  [method, path, body]: readonly [string, string, unknown?],
  headers: Sent = {},
): Promise<number> {
  const kind = path.endsWith('s') ? 'json-patch' : 'merge-patch';
  const type = method === 'PATCH' ? { 'Content-Type': `application/${kind}+json` } : {};
  const response = await server.send(method, path, body, { ...type, ...headers });
  const text = await response.text();
  if (response.status === 412) assert.match(text, /"code":"precondition_failed"/);
  return response.status;
}

const createPost = (server: TestServer): Promise<string> =>
  server.make('/posts', { title: 'one', content: 'some text' });

/** Two nodes on one store, or one twice where a store has one. */
async function open(t: TestContext, { newUrl }: StorePlace) {
  const env = { STORE_URL: await newUrl(t) };
  const one = await startServer(t, { env });
  const other = env.STORE_URL.startsWith('postgres') ? await startServer(t, { env }) : one;
  return { one, other };
}

for (const place of stores) {
  describe(`conditional requests to a store ${place.name}`, { skip: place.skip }, () => {
    it('change a post only in the state that is asked for', async (t) => {
      const { one, other } = await open(t, place);
      const post = await createPost(one);
      const put = ['PUT', post, { title: 'two', content: 'changed' }] as const;
      const first = await tagOf(one, post);
      for (const tag of ['"x"', `W/${first}`]) {
        assert.equal(await change(one, put, { 'If-Match': tag }), 412, tag);
        assert.equal(await change(one, ['DELETE', post], { 'If-Match': tag }), 412, tag);
      }
      for (const tag of [first, `W/${first}`, '*']) {
        assert.equal(await change(one, put, { 'If-None-Match': tag }), 412, tag);
      }
      assert.equal(await tagOf(other, post), first);
      assert.equal(await change(other, put, { 'If-Match': `"x", ${first}` }), 204);
      assert.equal(await change(one, put, { 'If-Match': first }), 412);
      assert.equal(await change(one, ['DELETE', post], { 'If-Match': first }), 412);
      assert.equal(await change(one, put, { 'If-Match': '*', 'If-None-Match': '"x"' }), 204);
      const second = await tagOf(one, post);
      assert.equal(await change(other, ['DELETE', post], { 'If-Match': second }), 204);
      // What is not there is 404, whatever it should be (RFC 9110 §13.2.1).
      assert.equal(await change(one, put, { 'If-Match': '*' }), 404);
      assert.equal(await change(one, ['DELETE', post], { 'If-Match': second }), 404);
    });

    it('let one of many conditional changes through, on whatever node', async (t) => {
      const { one, other } = await open(t, place);
      for (const [method, path] of [
        ['PUT', await createPost(one)],
        ['PATCH', '/api/articles/1'],
      ] as const) {
        const tag = { 'If-Match': await tagOf(one, path) };
        const changes = times(12).map((at) =>
          change(at % 2 ? other : one, [method, path, { title: `${at}`, content: 'x' }], tag),
        );
        const statuses = (await Promise.all(changes)).toSorted((a, b) => a - b);
        assert.deepEqual(statuses, [204, ...times(11).map(() => 412)], path);
      }
    });
  });
}

test('what is answered has a tag, and is 304 where the client has it', async (t) => {
  const { one } = await open(t, inMemory);
  const post = await createPost(one);
  const comment = await one.make(`${post}/comments`, { content: 'a' });
  const todo = await one.make('/api/todos', { title: 'a', completed: false });
  const lists = ['/posts', `${post}/comments`, '/api/todos', '/api/articles', '/files'];
  for (const path of [...lists, post, comment, todo, '/api/articles/1']) {
    const tag = await tagOf(one, path);
    assert.equal(await tagOf(one, path), tag, path);
    const bare = tag.replaceAll('"', '');
    // As Caddy, Apache and Jetty send on what they have compressed.
    const coded = ['-gzip', '-zstd', '--gzip'].map((coding) => `"${bare}${coding}"`);
    const known = [tag, `W/${tag}`, `"x", ${tag}`, '*', '"*"', bare, `x,${bare}`, ...coded];
    for (const value of known) {
      const headers = { 'If-None-Match': value };
      const same = await one.fetch(path, { headers });
      assert.deepEqual([same.status, await same.text()], [304, ''], `${path} ${value}`);
      assert.equal(same.headers.get('etag'), tag, value);
      assert.equal((await one.fetch(path, { method: 'HEAD', headers })).status, 304, value);
    }
    // Strong comparison (RFC 9110 §13.1.1).
    const others = ['"x"', `W/${tag}`, `W/${bare}`, '"a,*,b"', `'${bare}'`, `"${bare}-other"`, ''];
    for (const [name, value, status] of [
      ['If-None-Match', '"x", W/"y", "a,*,b", *', 200],
      ...[`"x", ${tag}`, ...coded].map((given) => ['If-Match', given, 200] as const),
      ...others.map((given) => ['If-Match', given, 412] as const),
    ] as const) {
      const found = await one.fetch(path, { headers: { [name]: value } });
      assert.equal(found.status, status, `${path} ${value}`);
    }
  }
  const missing = await one.fetch('/posts/x', { headers: { 'If-None-Match': '*' } });
  assert.deepEqual([missing.status, missing.headers.get('etag')], [404, null]);
  const asked = await one.send('POST', '/graphql', { query: '{ allPosts { id } }' });
  assert.deepEqual([asked.status, asked.headers.get('etag')], [200, null]);
  // What counts changes begins again with each run.
  const next = await startServer(t);
  assert.notEqual(await tagOf(next, '/api/articles'), await tagOf(one, '/api/articles'));
});

test('articles are patched, replaced and removed only in the state that is asked for', async (t) => {
  const { one } = await open(t, inMemory);
  const path = '/api/articles';
  const first = await tagOf(one, path);
  const all = ['PATCH', path, [{ op: 'replace', path: '/0/title', value: 'a' }]] as const;
  assert.equal(await change(one, all, { 'If-Match': '"x"' }), 412);
  assert.equal(await tagOf(one, path), first);
  assert.equal(await change(one, all, { 'If-Match': first }), 204);
  assert.equal(await change(one, all, { 'If-Match': first }), 412);
  assert.equal(await change(one, all, { 'If-None-Match': '*' }), 412);
  // Those with an id too (R15).
  const tag = { 'If-Match': await tagOf(one, '/api/articles/1') };
  for (const [id, headers, status] of [
    [1, { 'If-None-Match': '*' }, 412],
    [1, { 'If-Match': '"stale"' }, 412],
    [77, { 'If-Match': '*' }, 412],
    [1, { ...tag, 'Idempotency-Key': 'a' }, 201],
    [1, tag, 412],
    [77, { 'If-None-Match': '*' }, 201],
    [77, { 'If-None-Match': '*' }, 412],
  ] as const) {
    assert.equal(await change(one, ['POST', path, { id, title: 'new' }], headers), status);
  }
  const newer = await tagOf(one, '/api/articles/1');
  for (const [headers, status] of [
    [{ 'If-Match': '"stale"' }, 412],
    [{ 'If-None-Match': newer }, 412],
    [{ 'If-Match': newer }, 204],
    [{}, 404],
  ] as const) {
    assert.equal(await change(one, ['DELETE', '/api/articles/1'], headers), status);
  }
});

test('a condition on articles that are too long to be changed together is 413', async (t) => {
  const server = await startServer(t, { env: { MEMORY_STORE_BYTES_MAX: '100000000' } });
  const patch = (condition: string): Promise<number> =>
    change(server, ['PATCH', '/api/articles', []], { 'If-Match': condition });
  const article = { title: 'Long', content: 'x'.repeat(1_000_000) };
  for (const _ of times(4)) await server.make('/api/articles', article);
  assert.equal(await patch('"x"'), 412);
  assert.equal(await patch(await tagOf(server, '/api/articles')), 204);
  await server.make('/api/articles', article);
  for (const condition of ['"x"', '*']) assert.equal(await patch(condition), 413);
});

test('a tag that ends as the suffix of a coding begins is known with a suffix too', () => {
  const response = { status: 200, headers: [], body: '', etag: '"a-"' };
  for (const [value, status] of [
    ['"a--gzip"', 304],
    ['"a---gzip"', 304],
    ['"a-gzip"', 200],
    ['"b--gzip"', 200],
  ] as const) {
    const header = (name: string) => (name === 'if-none-match' ? value : undefined);
    assert.equal(toConditional(response, { method: 'GET', header }).status, status, value);
  }
});
