/** What routes have in common (methods, media types, request ids), the greeting and the home page. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { test } from 'node:test';
import { entries } from '../support/reference.ts';
import { startServer } from '../support/server.ts';

const post = '/posts/00000000-0000-7000-8000-0000000000ff';

/** RFC 5789 §3.1. */
const mergePatch = 'application/merge-patch+json';
const patches = new Map([
  [post, mergePatch],
  ['/comments/x', mergePatch],
  ['/api/todos/x', mergePatch],
  ['/api/articles', 'application/json-patch+json'],
  ['/api/articles/1', `application/json-patch+json, ${mergePatch}`],
]);

test('another method is 405 with Allow, and OPTIONS tells the same', async (t) => {
  const server = await startServer(t);
  for (const [path, allow] of [
    ['/', 'GET, HEAD'],
    ['/hello', 'GET, HEAD'],
    ['/graphql', 'POST, GET, HEAD'],
    ['/posts', 'GET, POST, HEAD'],
    [post, 'GET, PUT, PATCH, DELETE, HEAD'],
    [`${post}/comments`, 'GET, POST, HEAD'],
    ['/comments', 'GET, HEAD'],
    ['/comments/removals', 'POST'],
    ['/comments/x', 'GET, PATCH, DELETE, HEAD'],
    ['/auth/login', 'POST'],
    ['/auth/refresh', 'POST'],
    ['/auth/password', 'POST'],
    ['/profile', 'GET, HEAD'],
    ['/api/multiparts', 'GET, HEAD'],
    ['/api/multiparts/list', 'POST'],
    ['/api/multiparts/x', 'GET, DELETE, HEAD'],
    ['/api/todos', 'GET, POST, HEAD'],
    ['/api/todos/x', 'GET, PATCH, DELETE, HEAD'],
    ['/api/articles', 'GET, POST, PATCH, HEAD'],
    ['/api/articles/1', 'GET, PATCH, DELETE, HEAD'],
    ['/articles/1', 'GET, PATCH, DELETE, HEAD'],
  ] as const) {
    await t.test(path, async () => {
      const method = allow.includes('PUT') ? 'POST' : 'PUT';
      const refused = await server.fetch(path, { method, body: 'x' });
      assert.deepEqual(await refused.json(), {
        title: 'Method Not Allowed',
        status: 405,
        code: 'method_not_allowed',
        error: `This resource has ${allow}, OPTIONS.`,
      });
      const options = await server.fetch(path, { method: 'OPTIONS' });
      for (const { headers } of [refused, options]) {
        assert.equal(headers.get('allow'), `${allow}, OPTIONS`, path);
      }
      assert.equal(options.headers.get('accept-patch'), patches.get(path) ?? null, path);
      assert.deepEqual([refused.status, options.status], [405, 204]);
    });
  }
});

test('a response of another type than asked for is 406, another spelling of a path 404', async (t) => {
  const server = await startServer(t);
  const statusOf = async (path: string): Promise<number> =>
    (await server.fetch(path, { headers: { Accept: 'image/png' } })).status;
  const { headers } = await server.send('POST', '/posts', { title: 'a', content: 'b' });
  const made = headers.get('location') ?? '';
  const paths = ['/', '/hello', '/posts', made, `${made}/comments`, '/api/articles', '/api/todos'];
  for (const path of paths) assert.equal(await statusOf(path), 406, path);
  const accept = { Accept: 'text/html, application/json;q=0.1' };
  assert.equal((await server.fetch('/posts', { headers: accept })).status, 200);
  // A POST never fails for its Accept (R6).
  const type = { 'Content-Type': 'application/json', Accept: 'image/png' };
  const init = { method: 'POST', headers: type, body: '{"title":"a","content":"b"}' };
  assert.equal((await server.fetch('/posts', init)).status, 201);
  for (const path of ['/todos', '/api', '/api/', '/api/todos/', '/API/todos']) {
    assert.equal(await statusOf(path), 404, path);
  }
});

test('GET /hello: a plain text that begins with Hello (R32)', async (t) => {
  const server = await startServer(t);
  const response = await server.fetch('/hello?anything=%zz');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
  const text = await response.text();
  assert.match(text, /^Hello/);
  assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(response.headers.get('x-powered-by'), null);
});

test('every response has a request id of its own', async (t) => {
  const server = await startServer(t);
  const ids = new Set<string | null>();
  for (const path of ['/hello', '/hello', '/nowhere', '/posts']) {
    ids.add((await server.fetch(path)).headers.get('x-request-id'));
  }
  assert.equal(ids.size, 4);
  assert.ok(!ids.has(null));
});

test('GET /: the routes as JSON, for a client that is no browser', async (t) => {
  const server = await startServer(t);
  const response = await server.fetch('/');
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.equal(response.headers.get('vary'), 'Accept');
  const { name, routes, ...links } = (await response.json()) as Record<string, unknown>;
  assert.equal(name, 'Inkwell');
  assert.deepEqual(links, { ui: '/graphql-ui/', reference: '/docs/', openapi: '/openapi.json' });
  for (const route of ['GET /', 'POST /graphql', 'GET /posts/{id}', 'GET /readyz']) {
    assert.ok((routes as string[]).includes(route), route);
  }
});

test('GET /: a page for a browser, whose links lead somewhere', async (t) => {
  const server = await startServer(t);
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const response = await server.fetch('/', { headers: { Accept: accept } });
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'/);
  const page = await response.text();
  assert.doesNotMatch(page, /<script(?![^>]* src=)/);
  const links = new Set(
    Array.from(page.matchAll(/(?:href|src)="(\/[^"#]+)/g), ([, link = '']) => link),
  );
  for (const link of ['/graphql-ui/', '/docs/', '/docs/home.js']) assert.ok(links.has(link), link);
  for (const link of links) assert.equal((await server.fetch(link)).status, 200, link);
  const terms = Array.from(page.matchAll(/<dt>(.+?)<\/dt>/gs), ([, term = '']) => term);
  const listed = terms.map((term) => term.replaceAll(/<[^>]+>/g, '').trim());
  const { routes } = (await (await server.fetch('/')).json()) as { routes: readonly string[] };
  assert.deepEqual(listed.toSorted(), routes.toSorted());
  for (const { name, operation } of entries) {
    const link = `<a href="/docs/#/${operation.tags[0]}/${operation.operationId}"`;
    assert.ok(terms[listed.indexOf(name)]?.includes(link), `${name}: ${link}`);
  }
});

test('GET /: the page has one Vary for all that it depends on', async (t) => {
  for (const [ALLOWED_ORIGINS, vary] of [
    ['', 'Accept-Encoding, Accept'],
    ['https://a.example', 'Origin, Accept-Encoding, Accept'],
  ] as const) {
    const { port } = await startServer(t, { env: { ALLOWED_ORIGINS } });
    const asked = request({ port, agent: false, headers: { Accept: 'text/html' } }).end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    const { rawHeaders } = response;
    const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1] === 'Vary');
    assert.deepEqual(values, [vary]);
  }
});

test('GET /graphql without a query leads a browser to the UI, and no other client', async (t) => {
  const server = await startServer(t);
  const get = (target: string, accept: string): Promise<Response> =>
    server.fetch(target, { headers: { Accept: accept }, redirect: 'manual' });
  const response = await get('/graphql', 'text/html,application/xml;q=0.9,*/*;q=0.8');
  assert.equal(response.status, 303);
  assert.equal(response.headers.get('location'), '/graphql-ui/');
  assert.equal(response.headers.get('vary'), 'Accept');
  assert.equal((await get('/graphql', '*/*')).status, 400);
  assert.equal((await get('/graphql', 'application/json, text/html')).status, 400);
  assert.equal((await get('/graphql?query={__typename}', 'text/html')).status, 406);
});
