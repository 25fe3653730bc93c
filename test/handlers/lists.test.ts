/** Lists in pages, over REST and as `allPosts(first, after)` (R14a): each reads one page of the store. */

import assert from 'node:assert/strict';
import { describe, it, test, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import { type Listed, pluck, readPages, times } from '../support/lists.ts';
import { logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { inSqliteFile, stores } from '../support/stores.ts';

const start = (t: TestContext, env: Readonly<Record<string, string>> = {}): Promise<TestServer> =>
  startServer(t, { env: { DEMO_DATA: 'false', ...env } });

/** A server with five records of each kind, and the paths of the lists. */
async function startFilled(t: TestContext) {
  const server = await start(t);
  for (const title of ['0', '1', '2', '3', '4']) {
    await server.make('/posts', { title, content: 'text' });
    await server.make('/api/todos', { title });
    await server.make('/api/articles', { title });
  }
  const comments = `/posts/${(await server.read<Listed[]>('/posts'))[0]?.id}/comments`;
  for (const count of times(5)) await server.make(comments, { content: `${count}` });
  return { server, lists: ['/posts', comments, '/api/todos', '/api/articles'] };
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

const codeOf = async (...asked: Parameters<typeof ask>): Promise<string | undefined> =>
  (await ask(...asked)).errors?.[0]?.extensions.code;

async function idsOf(server: TestServer, variables: object): Promise<readonly string[]> {
  const { ids = [], errors } = await ask(server, variables);
  assert.equal(errors, undefined);
  return ids;
}

test('posts, comments, todos and articles are read in pages, each linked to the next', async (t) => {
  const { server, lists } = await startFilled(t);
  for (const path of lists) {
    const whole = await server.read<Listed[]>(path);
    const pages = await readPages(server, `${path}?limit=2`);
    assert.deepEqual(pages.flat(), whole, path);
    assert.equal(pages.length, Math.ceil(whole.length / 2), path);
    assert.deepEqual(await readPages(server, `${path}?limit=1000`), [whole], path);
    const rest = await server.fetch(`${path}?after=${whole[2]?.id}`);
    assert.equal(rest.headers.get('link'), null, path);
    assert.deepEqual(await rest.json(), whole.slice(3), path);
    assert.equal((await server.fetch(`${path}?limit=2`, { method: 'HEAD' })).status, 200, path);
  }
});

for (const { name, skip, newUrl } of stores) {
  const title = `pages have the bytes of the whole list, whatever its texts ${name}`;
  test(title, { skip }, async (t) => {
    const server = await start(t, { STORE_URL: await newUrl(t) });
    const readAll = async (path: string): Promise<void> => {
      const text = await (await server.fetch(path)).text();
      assert.equal(await (await server.fetch(`${path}?limit=1000`)).text(), text);
      const pages = await readPages(server, `${path}?limit=2`);
      assert.equal(JSON.stringify(pages.flat()), text);
    };
    const controls = Array.from(times(0x20), (code) => String.fromCharCode(code)).join('');
    const plain = [`\\"/${controls.slice(1)}\u007f\u2028\u00e9\u{1f600}'`, 'text\n{}', ','];
    // Escaped in a database, or too long to be read with others.
    const others = [controls, '\u241a0041', 'x'.repeat(20_000)];
    const posts: string[] = [];
    for (const content of [...plain, ...others]) {
      if (content === controls) await readAll('/posts');
      const post = await server.make('/posts', { title: `"${content}`, content });
      for (const text of [content, 'plain'])
        await server.make(`${post}/comments`, { content: text });
      posts.push(`${post}/comments`);
    }
    for (const path of ['/posts', ...posts]) await readAll(path);
  });
}

test('posts are listed by their status and author, in pages too, at both doors (R37, R46)', async (t) => {
  const server = await start(t, { DEMO_DATA: 'true' });
  for (const { id } of await server.read<Listed[]>('/posts')) {
    await server.fetch(`/posts/${id}`, { method: 'DELETE' });
  }
  const Authorization = `Bearer ${await logIn(server)}`;
  const { id: author } = await server.read<{ readonly id: string }>('/profile', { Authorization });
  const ids: string[] = [];
  // Every other one is of the author.
  for (const at of times(6)) {
    const headers = at % 2 === 1 ? { Authorization } : {};
    const path = await server.make('/posts', { title: 'a', content: 'b' }, headers);
    ids.unshift(path.slice('/posts/'.length));
  }
  const [a = '', other = '', b = '', c = '', d = '', e = ''] = ids;
  for (const id of [d, c, b]) {
    const put = { title: 'a', content: 'b', status: 'PUBLISHED' };
    assert.equal((await server.send('PUT', `/posts/${id}`, put)).status, 204);
  }
  const text = `query ($author: ID, $status: PostStatus, $first: Int, $after: ID) {
    allPosts(author: $author, status: $status, first: $first, after: $after) { id } }`;
  const [published, draft] = [{ status: 'PUBLISHED' }, { status: 'DRAFT' }];
  for (const [asked, expected] of [
    [published, [b, c, d]],
    [{ ...published, after: c }, [d]],
    [{ ...draft, after: a }, [other, e]],
    [{ status: 'PENDING_MODERATION' }, []],
    [{ author }, [a, b, d]],
    [{ author: author.toUpperCase(), ...draft }, [a]],
    [{ author, after: a }, [b, d]],
    [{ author: '00000000-0000-7000-8000-0000000000ff' }, []],
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
  const nulls = { author: null, status: null, first: null, after: null };
  assert.deepEqual((await ask(server, nulls, text)).ids, ids);
  for (const [parameter, value] of Object.entries({ status: 'draft', author: 'x' })) {
    for (const query of [`${parameter}=${value}`, `${parameter}=&${parameter}=`]) {
      const problem = await server.read<Record<string, unknown>>(`/posts?${query}`);
      assert.deepEqual([problem['status'], problem['parameter']], [400, parameter], query);
    }
    assert.equal(await codeOf(server, { [parameter]: value }, text), 'BAD_USER_INPUT');
  }
  // Only posts have one.
  assert.equal((await server.fetch('/api/todos?status=x&author=x')).status, 200);
});

test('bad parameters are refused with their name, others are not looked at', async (t) => {
  const { server, lists } = await startFilled(t);
  const limits = ['limit=0', 'limit=1001', 'limit=-1', 'limit=1e2', 'limit=2&limit='];
  const afters = ['after=x', 'limit=2&after=%00', 'after=0'];
  for (const path of lists) {
    for (const query of [...limits, ...afters]) {
      const name = limits.includes(query) ? 'limit' : 'after';
      const problem = await server.read<Record<string, unknown>>(`${path}?${query}`);
      const { status, code, parameter, error } = problem;
      assert.deepEqual([status, code, parameter], [400, 'invalid_parameter', name], query);
      assert.match(String(error), new RegExp(`^The parameter ${name} must be `), query);
    }
    const whole = await server.read(path);
    for (const query of ['Limit=2&page=3', 'limit=&after=&status=&author=']) {
      assert.deepEqual(await server.read(`${path}?${query}`), whole, `${path} ${query}`);
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
      const server = await start(t, { STORE_URL: await newUrl(t) });
      const long = 'x'.repeat(400_000);
      for (const content of ['a', long, long, long, long, 'b', 'c']) {
        await server.make('/posts', { title: 'a', content });
      }
      const ids = pluck(await server.read<{ id: string }[]>('/posts'), 'id');
      assert.equal(ids.length, 7);
      const pick = fc.integer({ min: 1, max: 9 });
      for (const first of new Set([1, 7, 8, 1_000, ...fc.sample(pick, 3)])) {
        const read: string[] = [];
        // Only the last page is short.
        for (let count = first; count === first;) {
          const page = await idsOf(server, { first, after: read.at(-1) ?? null });
          read.push(...page);
          count = page.length;
        }
        assert.deepEqual(read, ids, `${first}`);
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

  it('are refused by the name of a value out of its bounds', async (t) => {
    const server = await startServer(t);
    for (const [variables, name] of [
      [{ first: 0 }, 'first'],
      [{ first: -1 }, 'first'],
      [{ first: 1_001 }, 'first'],
      [{ first: 2, after: 'x' }, 'after'],
      [{ after: 7 }, 'after'],
    ] as const) {
      const { ids, errors = [] } = await ask(server, variables);
      assert.deepEqual([ids, errors.length], [undefined, 1]);
      const [{ path, extensions, message } = assert.fail()] = errors;
      assert.deepEqual([path, extensions.code], [['allPosts'], 'BAD_USER_INPUT']);
      assert.match(message, new RegExp(`^The parameter ${name} must be one `));
    }
    for (const first of [1.5, '2', 2 ** 31]) {
      assert.equal(await codeOf(server, { first }), 'BAD_USER_INPUT', `${first}`);
    }
  });
});

test('what is read of a database is held to the memory of all requests', async (t) => {
  const startLong = async (STORE_URL: string): Promise<TestServer> => {
    const server = await start(t, { REQUEST_MEMORY_BYTES_MAX: '8388608', STORE_URL });
    const post = { title: 'a', content: 'x'.repeat(400_000) };
    for (const _ of times(30)) await server.make('/posts', post);
    return server;
  };
  // These records are there anyway.
  assert.equal((await idsOf(await startLong('memory:'), {})).length, 30);
  if (inSqliteFile.skip !== false) return;
  const server = await startLong(await inSqliteFile.newUrl(t));
  for (const _ of times(2)) {
    for (const variables of [{}, { first: 29 }]) {
      const what = JSON.stringify(variables);
      assert.equal(await codeOf(server, variables), 'PAYLOAD_TOO_LARGE', what);
    }
    assert.equal((await idsOf(server, { first: 5 })).length, 5);
  }
});
