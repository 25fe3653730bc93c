/** Lists in pages, over REST and as `allPosts(first, after)` (R14a): each reads one page of the store. */

import assert from 'node:assert/strict';
import { describe, it, test, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import { type Listed, pluck, readPages, times } from '../support/lists.ts';
import { logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { inSqliteFile, stores } from '../support/stores.ts';

async function startFilled(t: TestContext): Promise<{ server: TestServer; post: string }> {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  for (const title of ['0', '1', '2', '3', '4']) {
    await server.send('POST', '/posts', { title, content: 'text' });
    await server.send('POST', '/api/todos', { title });
    await server.send('POST', '/api/articles', { title });
  }
  const [post] = (await (await server.fetch('/posts')).json()) as Listed[];
  for (const count of times(5)) {
    await server.send('POST', `/posts/${post?.id}/comments`, { content: `${count}` });
  }
  return { server, post: String(post?.id) };
}

interface Answer {
  readonly ids: readonly string[] | undefined;
  readonly errors?: readonly {
    readonly message: string;
    readonly path: readonly string[];
    readonly extensions: { readonly code: string };
  }[];
}

const pageQuery =
  'query ($first: Int, $after: ID) { allPosts(first: $first, after: $after) { id } }';

/** The ids of `allPosts`; undefined where there is no data. */
async function ask(server: TestServer, variables: object, text = pageQuery): Promise<Answer> {
  const response = await server.send('POST', '/graphql', { query: text, variables });
  assert.equal(response.status, 200);
  const { data, ...rest } = (await response.json()) as Answer & {
    readonly data: { readonly allPosts: readonly { readonly id: string }[] } | null;
  };
  return { ...rest, ids: data?.allPosts.map(({ id }) => id) };
}

async function idsOf(server: TestServer, variables: object): Promise<readonly string[]> {
  const { ids = [], errors } = await ask(server, variables);
  assert.equal(errors, undefined);
  return ids;
}

/** Every page of so many posts, each behind the last post of the one before. */
async function readAllPosts(server: TestServer, first: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (;;) {
    const page = await idsOf(server, { first, after: ids.at(-1) ?? null });
    ids.push(...page);
    // Only the last page is short.
    if (page.length < first) return ids;
  }
}

test('posts, comments, todos and articles are read in pages, each linked to the next', async (t) => {
  const { server, post } = await startFilled(t);
  for (const path of ['/posts', `/posts/${post}/comments`, '/api/todos', '/api/articles']) {
    const whole = (await (await server.fetch(path)).json()) as Listed[];
    const pages = await readPages(server, `${path}?limit=2`);
    assert.deepEqual(pages.flat(), whole, path);
    assert.ok(
      pages.every((page) => page.length <= 2),
      path,
    );
    assert.deepEqual(await readPages(server, `${path}?limit=1000`), [whole], path);
    const after = whole[2]?.id;
    const rest = await server.fetch(`${path}?after=${after}`);
    assert.equal(rest.headers.get('link'), null, path);
    assert.deepEqual(await rest.json(), whole.slice(3), path);
    assert.equal((await server.fetch(`${path}?limit=2`, { method: 'HEAD' })).status, 200, path);
  }
});

for (const { name, skip, newUrl } of stores) {
  test(
    `pages have the bytes of the whole list, whatever its texts ${name}`,
    { skip },
    async (t) => {
      const env = { DEMO_DATA: 'false', STORE_URL: await newUrl(t) };
      const server = await startServer(t, { env });
      const create = async (content: string): Promise<string> => {
        const created = await server.send('POST', '/posts', { title: `"${content}`, content });
        assert.equal(created.status, 201);
        const post = created.headers.get('location') ?? '';
        await server.send('POST', `${post}/comments`, { content });
        await server.send('POST', `${post}/comments`, { content: 'plain' });
        return post;
      };
      const readAll = async (path: string): Promise<void> => {
        const text = await (await server.fetch(path)).text();
        assert.equal(await (await server.fetch(`${path}?limit=1000`)).text(), text);
        const pages = await readPages(server, `${path}?limit=2`);
        assert.equal(JSON.stringify(pages.flat()), text);
      };
      const controls = Array.from(times(0x20), (code) => String.fromCharCode(code)).join('');
      const plain = [`\\"/${controls.slice(1)}\u007f\u2028\u00e9\u{1f600}'`, 'text\n{}', ','];
      const posts: string[] = [];
      for (const content of plain) posts.push(await create(content));
      await readAll('/posts');
      // Escaped in a database, or too long to be read with others.
      for (const content of [controls, '\u241a0041', 'x'.repeat(20_000)]) {
        posts.push(await create(content));
      }
      for (const path of ['/posts', ...posts.map((post) => `${post}/comments`)])
        await readAll(path);
    },
  );
}

test('posts are listed by their status and author, in pages too, at both doors (R37, R46)', async (t) => {
  const server = await startServer(t);
  for (const { id } of (await (await server.fetch('/posts')).json()) as Listed[]) {
    await server.fetch(`/posts/${id}`, { method: 'DELETE' });
  }
  const authorization = `Bearer ${await logIn(server)}`;
  const profile = await server.fetch('/profile', { headers: { authorization } });
  const { id: author } = (await profile.json()) as { readonly id: string };
  const ids: string[] = [];
  // Every other one is of the author.
  for (const at of times(6)) {
    const headers = { 'Content-Type': 'application/json', ...(at % 2 === 1 && { authorization }) };
    const init = { method: 'POST', headers, body: '{"title":"a","content":"b"}' };
    const { headers: made } = await server.fetch('/posts', init);
    ids.unshift(made.get('location')?.slice('/posts/'.length) ?? '');
  }
  const [a = '', other = '', b = '', c = '', d = '', e = ''] = ids;
  for (const id of [d, c, b]) {
    const put = { title: 'a', content: 'b', status: 'PUBLISHED' };
    assert.equal((await server.send('PUT', `/posts/${id}`, put)).status, 204);
  }
  const text = `query ($author: ID, $status: PostStatus, $first: Int, $after: ID) {
    allPosts(author: $author, status: $status, first: $first, after: $after) { id } }`;
  const nobody = '00000000-0000-7000-8000-0000000000ff';
  const [published, draft] = [{ status: 'PUBLISHED' }, { status: 'DRAFT' }];
  for (const [asked, expected] of [
    [published, [b, c, d]],
    [{ ...published, after: c }, [d]],
    [{ ...draft, after: a }, [other, e]],
    [{ status: 'PENDING_MODERATION' }, []],
    [{ author }, [a, b, d]],
    [{ author: author.toUpperCase(), ...draft }, [a]],
    [{ author, after: a }, [b, d]],
    [{ author: nobody }, []],
  ] as const) {
    const query = new URLSearchParams(asked).toString();
    for (const limit of ['', '&limit=1', '&limit=2']) {
      const pages = await readPages(server, `/posts?${query}${limit}`);
      assert.deepEqual(pluck(pages.flat(), 'id'), expected, `${query}${limit}`);
    }
    assert.deepEqual((await ask(server, asked, text)).ids, expected, query);
    const first = (await ask(server, { ...asked, first: 1 }, text)).ids;
    assert.deepEqual(first, expected.slice(0, 1), query);
  }
  assert.deepEqual(
    (await ask(server, { author: null, status: null, first: null, after: null }, text)).ids,
    ids,
  );
  for (const [parameter, value] of [
    ['status', 'draft'],
    ['author', 'x'],
  ] as const) {
    for (const query of [`${parameter}=${value}`, `${parameter}=&${parameter}=`]) {
      const response = await server.fetch(`/posts?${query}`);
      const { code, parameter: named } = (await response.json()) as Record<string, string>;
      assert.deepEqual(
        [response.status, code, named],
        [400, 'invalid_parameter', parameter],
        query,
      );
    }
    const { errors } = await ask(server, { [parameter]: value }, text);
    assert.equal(errors?.[0]?.extensions.code, 'BAD_USER_INPUT');
  }
  // Only posts have one.
  assert.equal((await server.fetch('/api/todos?status=x&author=x')).status, 200);
});

test('bad parameters are refused with their name, others are not looked at', async (t) => {
  const { server, post } = await startFilled(t);
  const limits = ['limit=0', 'limit=1001', 'limit=-1', 'limit=1e2', 'limit=2&limit='];
  const afters = ['after=x', 'limit=2&after=%00', 'after=0'];
  for (const path of ['/posts', `/posts/${post}/comments`, '/api/todos', '/api/articles']) {
    for (const query of [...limits, ...afters]) {
      const parameter = limits.includes(query) ? 'limit' : 'after';
      const response = await server.fetch(`${path}?${query}`);
      assert.equal(response.status, 400, query);
      const problem = (await response.json()) as Record<string, unknown>;
      assert.equal(problem['code'], 'invalid_parameter', query);
      assert.equal(problem['parameter'], parameter, query);
      assert.match(
        String(problem['error']),
        new RegExp(`^The parameter ${parameter} must be `),
        query,
      );
    }
    const whole: unknown = await (await server.fetch(path)).json();
    for (const query of ['Limit=2&page=3', 'limit=&after=&status=&author=']) {
      const same: unknown = await (await server.fetch(`${path}?${query}`)).json();
      assert.deepEqual(same, whole, `${path} ${query}`);
    }
    // A query string of thousands of parameters takes as long as hundreds of small requests.
    const long = await server.fetch(`${path}?${'a&'.repeat(32)}limit=2`);
    assert.equal(long.status, 400, path);
  }
  const missing = '019b8d5e-9c00-7000-8000-000000009999';
  assert.equal((await server.fetch(`/posts/${missing}/comments?limit=2`)).status, 404);
});

describe('pages of posts over GraphQL', () => {
  for (const { name, skip, newUrl } of stores) {
    it(`are the whole list in its order, also with long posts, ${name}`, { skip }, async (t) => {
      const env = { STORE_URL: await newUrl(t), DEMO_DATA: 'false' };
      const server = await startServer(t, { env });
      const long = 'x'.repeat(400_000);
      for (const content of ['a', long, long, long, long, 'b', 'c']) {
        await server.send('POST', '/posts', { title: 'a', content });
      }
      const ids = pluck((await (await server.fetch('/posts')).json()) as { id: string }[], 'id');
      assert.equal(ids.length, 7);
      const pick = fc.integer({ min: 1, max: 9 });
      for (const first of new Set([1, 7, 8, 1_000, ...fc.sample(pick, 3)])) {
        assert.deepEqual(await readAllPosts(server, first), ids, `${first}`);
      }
      assert.deepEqual(await idsOf(server, { after: ids[2] }), ids.slice(3));
      assert.deepEqual(await idsOf(server, { after: '' }), ids); // as in REST
      const next = ids.slice(3, 5);
      assert.deepEqual(await idsOf(server, { after: ids[2]?.toUpperCase(), first: 2 }), next);
      assert.equal((await server.fetch(`/posts/${ids[2]}`, { method: 'DELETE' })).status, 204);
      assert.deepEqual(await idsOf(server, { after: ids[2], first: 2 }), next);
      assert.deepEqual(await idsOf(server, { after: ids.at(-1) }), []);
    });
  }
});

test('values out of their bounds are refused by name', async (t) => {
  const server = await startServer(t);
  for (const [variables, name] of [
    [{ first: 0 }, 'first'],
    [{ first: -1 }, 'first'],
    [{ first: 1_001 }, 'first'],
    [{ first: 2, after: 'x' }, 'after'],
    [{ after: 7 }, 'after'],
  ] as const) {
    await t.test(JSON.stringify([variables, name]), async () => {
      const { ids, errors = [] } = await ask(server, variables);
      assert.deepEqual([ids, errors.length], [undefined, 1]);
      const [{ path, extensions, message } = assert.fail()] = errors;
      assert.deepEqual([path, extensions.code], [['allPosts'], 'BAD_USER_INPUT']);
      assert.match(message, new RegExp(`^The parameter ${name} must be one `));
    });
  }
  for (const first of [1.5, '2', 2 ** 31]) {
    const { errors } = await ask(server, { first });
    assert.equal(errors?.[0]?.extensions.code, 'BAD_USER_INPUT', `${first}`);
  }
});

test('a page counts no more objects than it gives', async (t) => {
  const env = { GRAPHQL_OBJECTS_MAX: '100', DEMO_DATA: 'false' };
  const server = await startServer(t, { env });
  const post = { title: 'a', content: 'b' };
  await Promise.all(times(120).map(() => server.send('POST', '/posts', post)));
  const ids = pluck((await (await server.fetch('/posts')).json()) as { id: string }[], 'id');
  assert.deepEqual(await idsOf(server, { first: 100, after: ids[0] }), ids.slice(1, 101));
  // A list of so many posts is refused without a limit.
  for (const variables of [{}, { after: ids[0] }, { first: 101 }]) {
    const { errors } = await ask(server, variables);
    assert.equal(errors?.[0]?.extensions.code, 'PAYLOAD_TOO_LARGE', JSON.stringify(variables));
  }
});

test('what is read of a database is held to the memory of all requests', async (t) => {
  const start = async (url: string): Promise<TestServer> => {
    const env = { REQUEST_MEMORY_BYTES_MAX: '8388608', DEMO_DATA: 'false', STORE_URL: url };
    const server = await startServer(t, { env });
    const post = { title: 'a', content: 'x'.repeat(400_000) };
    for (const _ of times(30)) await server.send('POST', '/posts', post);
    return server;
  };
  // These records are there anyway.
  assert.equal((await idsOf(await start('memory:'), {})).length, 30);
  if (inSqliteFile.skip !== false) return;
  const server = await start(await inSqliteFile.newUrl(t));
  for (const _ of times(5)) {
    for (const variables of [{}, { first: 29 }]) {
      const { errors } = await ask(server, variables);
      assert.equal(errors?.[0]?.extensions.code, 'PAYLOAD_TOO_LARGE', JSON.stringify(variables));
    }
    assert.equal((await idsOf(server, { first: 5 })).length, 5);
  }
});
