import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startServer, type TestServer } from '../support/server.js';

interface Listed {
  readonly id: string | number;
}

/** Follows `Link` from the first page to the last one. */
async function readPages(
  server: TestServer,
  path: string,
): Promise<readonly (readonly Listed[])[]> {
  const pages: (readonly Listed[])[] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const response: Response = await server.fetch(next);
    assert.equal(response.status, 200);
    pages.push((await response.json()) as Listed[]);
    next = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1];
  }
  return pages;
}

async function startFilled(t: TestContext): Promise<{ server: TestServer; post: string }> {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  for (let count = 0; count < 5; count += 1) {
    await server.send('POST', '/posts', { title: `${count}`, content: 'text' });
    await server.send('POST', '/api/todos', { title: `${count}` });
    await server.send('POST', '/api/articles', { title: `${count}` });
  }
  const [post] = (await (await server.fetch('/posts')).json()) as Listed[];
  for (let count = 0; count < 5; count += 1) {
    await server.send('POST', `/posts/${post?.id}/comments`, { content: `${count}` });
  }
  return { server, post: String(post?.id) };
}

test('posts, comments, todos and articles are read in pages, each linked to the next', async (t) => {
  const { server, post } = await startFilled(t);
  for (const path of ['/posts', `/posts/${post}/comments`, '/api/todos', '/api/articles']) {
    const whole = (await (await server.fetch(path)).json()) as Listed[];
    const pages = await readPages(server, `${path}?limit=2`);
    assert.deepEqual(pages.flat(), whole);
    assert.ok(pages.every((page) => page.length <= 2));
    assert.deepEqual(await readPages(server, `${path}?limit=1000`), [whole]);
    const after = whole[2]?.id;
    const rest = await server.fetch(`${path}?after=${after}`);
    assert.equal(rest.headers.get('link'), null);
    assert.deepEqual(await rest.json(), whole.slice(3));
    assert.equal((await server.fetch(`${path}?limit=2`, { method: 'HEAD' })).status, 200);
  }
});

test('posts are listed by their status, in pages too (R37)', async (t) => {
  const { server } = await startFilled(t);
  const idsOf = (pages: readonly (readonly Listed[])[]) => pages.flat().map(({ id }) => id);
  const ids = idsOf(await readPages(server, '/posts'));
  const published = [ids[0], ids[2], ids[3]];
  const headers = { 'content-type': 'application/merge-patch+json' };
  const body = '{"status":"PUBLISHED"}';
  for (const id of published) {
    await server.fetch(`/posts/${id}`, { method: 'PATCH', headers, body });
  }
  assert.deepEqual(idsOf(await readPages(server, '/posts?status=PUBLISHED')), published);
  const pages = await readPages(server, '/posts?limit=2&status=PUBLISHED');
  assert.deepEqual([pages.length, idsOf(pages)], [2, published]);
  const rest = await readPages(server, `/posts?status=DRAFT&after=${ids[1]}`);
  assert.deepEqual(idsOf(rest), [ids[4]]);
  assert.deepEqual(await readPages(server, '/posts?status=PENDING_MODERATION'), [[]]);
  for (const query of ['status=', 'status=draft', 'status=DRAFT&status=DRAFT']) {
    const response = await server.fetch(`/posts?${query}`);
    const { code, parameter, error } = (await response.json()) as Record<string, string>;
    assert.deepEqual([response.status, code, parameter], [400, 'invalid_parameter', 'status']);
    const values = 'one of DRAFT, PENDING_MODERATION, PUBLISHED';
    assert.equal(error, `The parameter status must be ${values}.`);
  }
  // Only posts have one.
  const todos = await (await server.fetch('/api/todos')).text();
  assert.equal(await (await server.fetch('/api/todos?status=x')).text(), todos);
});

test('bad parameters are refused with their name, others are not looked at', async (t) => {
  const { server, post } = await startFilled(t);
  const faults: readonly (readonly [query: string, parameter: string])[] = [
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=1e2', 'limit'],
    ['limit=', 'limit'],
    ['limit=2&limit=2', 'limit'],
    ['after=', 'after'],
    ['after=x', 'after'],
    ['limit=2&after=%00', 'after'],
    ['after=0', 'after'],
  ];
  for (const path of ['/posts', `/posts/${post}/comments`, '/api/todos', '/api/articles']) {
    for (const [query, parameter] of faults) {
      const response = await server.fetch(`${path}?${query}`);
      assert.equal(response.status, 400, query);
      const problem = (await response.json()) as Record<string, unknown>;
      assert.equal(problem['code'], 'invalid_parameter');
      assert.equal(problem['parameter'], parameter);
      assert.match(String(problem['error']), new RegExp(`^The parameter ${parameter} must be `));
    }
    const whole: unknown = await (await server.fetch(path)).json();
    assert.deepEqual(await (await server.fetch(`${path}?Limit=2&page=3`)).json(), whole);
  }
  const missing = '019b8d5e-9c00-7000-8000-000000009999';
  assert.equal((await server.fetch(`/posts/${missing}/comments?limit=2`)).status, 404);
});
