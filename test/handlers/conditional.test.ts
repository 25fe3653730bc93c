/** Requests that depend on what the client has seen (RFC 9110 §13), over sockets, on every store. */

import assert from 'node:assert/strict';
import { describe, it, test, type TestContext } from 'node:test';
import { toConditional } from '../../dist/http/etag.js';
import { times } from '../support/lists.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { stores } from '../support/stores.ts';

type Headers = Readonly<Record<string, string>>;

const patchType = 'application/merge-patch+json';
const jsonPatchType = 'application/json-patch+json';

/** Two nodes on one store, or one twice where a store has one. */
interface Nodes {
  readonly one: TestServer;
  readonly other: TestServer;
}

const get = (server: TestServer, path: string, headers: Headers = {}): Promise<Response> =>
  server.fetch(path, { headers });

async function tagOf(server: TestServer, path: string): Promise<string> {
  const response = await get(server, path);
  await response.text();
  const tag = response.headers.get('etag') ?? '';
  assert.match(tag, /^"[\w-]+"$/, path);
  return tag;
}

async function change(
  server: TestServer,
  [method, path, body]: readonly [string, string, unknown?],
  headers: Headers = {},
): Promise<number> {
  const type = method === 'PATCH' ? (path.endsWith('s') ? jsonPatchType : patchType) : undefined;
  const response = await server.fetch(path, {
    method,
    headers: { 'Content-Type': type ?? 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (response.status === 412) {
    assert.equal((JSON.parse(text) as { code: string }).code, 'precondition_failed');
  }
  return response.status;
}

function describeConditions(open: (context: TestContext) => Promise<Nodes>): void {
  const createPost = async (server: TestServer, title: string): Promise<string> => {
    const response = await server.send('POST', '/posts', { title, content: 'some text' });
    return response.headers.get('location') ?? '';
  };

  it('tags what it answers, and says 304 where the client has it', async (context) => {
    const { one, other } = await open(context);
    const post = await createPost(one, 'one');
    const comment = await one.send('POST', `${post}/comments`, { content: 'a' });
    const todo = await one.send('POST', '/api/todos', { title: 'a', completed: false });
    const paths = ['/posts', post, `${post}/comments`, comment.headers.get('location') ?? ''];
    paths.push('/api/todos', new URL(todo.headers.get('location') ?? '').pathname);
    for (const path of [...paths, '/api/articles', '/api/articles/1']) {
      const tag = await tagOf(one, path);
      assert.equal(await tagOf(one, path), tag, path);
      const bare = tag.replaceAll('"', '');
      for (const value of [tag, `W/${tag}`, `"x", ${tag}`, '*', '"*"', bare, `x,${bare}`]) {
        const same = await get(one, path, { 'If-None-Match': value });
        assert.deepEqual([same.status, await same.text()], [304, ''], `${path} ${value}`);
        assert.equal(same.headers.get('etag'), tag, value);
        const headers = { 'If-None-Match': value };
        assert.equal((await one.fetch(path, { method: 'HEAD', headers })).status, 304, value);
      }
      // As Caddy, Apache and Jetty send on what they have compressed.
      for (const coding of ['-gzip', '-zstd', '--gzip']) {
        const value = tag.replace(/"$/, `${coding}"`);
        assert.equal((await get(one, path, { 'If-Match': value })).status, 200, value);
        assert.equal((await get(one, path, { 'If-None-Match': value })).status, 304, value);
      }
      const changed = await get(one, path, { 'If-None-Match': '"x", W/"y", "a,*,b", *' });
      assert.equal(changed.status, 200, path);
      const same = await get(one, path, { 'If-Match': `"x", ${tag}` });
      assert.deepEqual([same.status, await same.text()], [200, await changed.text()], path);
      // Strong comparison (RFC 9110 §13.1.1).
      for (const value of [
        '"x"',
        `W/${tag}`,
        `W/${bare}`,
        '"a,*,b"',
        `'${bare}'`,
        `"${bare}-other"`,
        '',
      ]) {
        assert.equal((await get(one, path, { 'If-Match': value })).status, 412, value);
      }
      if (one !== other) assert.equal(await tagOf(other, path), tag, path);
    }
  });

  it('changes a post only in the state that is asked for', async (context) => {
    const { one, other } = await open(context);
    const post = await createPost(one, 'one');
    const put = ['PUT', post, { title: 'two', content: 'changed' }] as const;
    const first = await tagOf(one, post);
    for (const [at, refused] of [{ 'If-Match': '"x"' }, { 'If-Match': `W/${first}` }].entries()) {
      assert.equal(await change(one, put, refused), 412, `refused ${at}`);
      assert.equal(await change(one, ['DELETE', post], refused), 412, `refused ${at}`);
    }
    for (const [at, refused] of [first, `W/${first}`, '*'].entries()) {
      assert.equal(await change(one, put, { 'If-None-Match': refused }), 412, `refused ${at}`);
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

  it('lets one of many conditional changes through, on whatever node', async (context) => {
    const { one, other } = await open(context);
    const post = await createPost(one, 'one');
    const allOnce = [204, ...times(11).map(() => 412)];
    const changeAtOnce = async (path: string, method: string): Promise<readonly number[]> => {
      const tag = { 'If-Match': await tagOf(one, path) };
      const statuses = times(12).map((at) =>
        change(at % 2 ? other : one, [method, path, { title: `${at}`, content: 'x' }], tag),
      );
      return (await Promise.all(statuses)).toSorted((a, b) => a - b);
    };
    assert.deepEqual(await changeAtOnce(post, 'PUT'), allOnce);
    assert.deepEqual(await changeAtOnce('/api/articles/1', 'PATCH'), allOnce);
  });

  it('patches articles only in the state that is asked for', async (context) => {
    const { one, other } = await open(context);
    const first = await tagOf(one, '/api/articles');
    const replacing = [{ op: 'replace', path: '/0/title', value: 'a' }];
    const all = ['PATCH', '/api/articles', replacing] as const;
    assert.equal(await change(other, all, { 'If-Match': '"x"' }), 412);
    assert.equal(await tagOf(one, '/api/articles'), first);
    assert.equal(await change(one, all, { 'If-Match': first }), 204);
    assert.notEqual(await tagOf(one, '/api/articles'), first);
    assert.equal(await change(one, all, { 'If-Match': first }), 412);
    assert.equal(await change(one, all, { 'If-None-Match': '*' }), 412);
  });

  it('answers events, errors and mutations without tags', async (context) => {
    const { one } = await open(context);
    const missing = await get(one, '/posts/x', { 'If-None-Match': '*' });
    assert.deepEqual([missing.status, missing.headers.get('etag')], [404, null]);
    const asked = await one.send('POST', '/graphql', { query: '{ allPosts { id } }' });
    assert.deepEqual([asked.status, asked.headers.get('etag')], [200, null]);
  });
}

for (const { name, skip, newUrl } of stores) {
  describe(`conditional requests to a store ${name}`, { skip }, () => {
    describeConditions(async (context) => {
      const env = { STORE_URL: await newUrl(context) };
      const one = await startServer(context, { env });
      const hasNodes = name === 'on PostgreSQL';
      return { one, other: hasNodes ? await startServer(context, { env }) : one };
    });
  });
}

test('a condition on articles that are too long to be changed together is 413', async (t) => {
  const server = await startServer(t, { env: { MEMORY_STORE_BYTES_MAX: '100000000' } });
  const patch = async (condition: string): Promise<number> => {
    const headers = { 'If-Match': condition, 'Content-Type': 'application/json-patch+json' };
    const init = { method: 'PATCH', headers, body: '[]' };
    return (await server.fetch('/api/articles', init)).status;
  };
  const content = 'x'.repeat(1_000_000);
  for (let count = 0; count < 4; count += 1) {
    const made = await server.send('POST', '/api/articles', { title: 'Long', content });
    assert.equal(made.status, 201, `round ${count}`);
  }
  assert.equal(await patch('"x"'), 412);
  const { headers } = await server.fetch('/api/articles', { method: 'HEAD' });
  assert.equal(await patch(headers.get('etag') ?? ''), 204);
  await server.send('POST', '/api/articles', { title: 'Long', content });
  assert.equal(await patch('"x"'), 413);
  assert.equal(await patch('*'), 413);
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
