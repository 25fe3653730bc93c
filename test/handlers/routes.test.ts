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
const jsonPatch = 'application/json-patch+json';

test('another method is 405 with Allow, and OPTIONS tells the same', async (t) => {
  const server = await startServer(t);
  for (const [path, allow, patches = null] of [
    ['/', 'GET, HEAD'],
    ['/hello', 'GET, HEAD'],
    ['/graphql', 'POST, GET, HEAD'],
    ['/posts', 'GET, POST, HEAD'],
    [post, 'GET, PUT, PATCH, DELETE, HEAD', mergePatch],
    [`${post}/comments`, 'GET, POST, HEAD'],
    ['/comments', 'GET, HEAD'],
    ['/comments/removals', 'POST'],
    ['/comments/x', 'GET, PATCH, DELETE, HEAD', mergePatch],
    ['/auth/login', 'POST'],
    ['/auth/refresh', 'POST'],
    ['/auth/password', 'POST'],
    ['/profile', 'GET, HEAD'],
    ['/api/multiparts', 'GET, HEAD'],
    ['/api/multiparts/list', 'POST'],
    ['/api/multiparts/x', 'GET, DELETE, HEAD'],
    ['/api/todos', 'GET, POST, HEAD'],
    ['/api/todos/x', 'GET, PATCH, DELETE, HEAD', mergePatch],
    ['/api/articles', 'GET, POST, PATCH, HEAD', jsonPatch],
    ['/api/articles/1', 'GET, PATCH, DELETE, HEAD', `${jsonPatch}, ${mergePatch}`],
    ['/articles/1', 'GET, PATCH, DELETE, HEAD'],
  ] as const) {
    const method = allow.includes('PUT') ? 'POST' : 'PUT';
    const refused = await server.fetch(path, { method, body: 'x' });
    const options = await server.fetch(path, { method: 'OPTIONS' });
    for (const { headers } of [refused, options]) {
      assert.equal(headers.get('allow'), `${allow}, OPTIONS`, path);
    }
    assert.equal(options.headers.get('accept-patch'), patches, path);
    assert.deepEqual([refused.status, options.status], [405, 204], path);
    assert.deepEqual(await refused.json(), {
      title: 'Method Not Allowed',
      status: 405,
      code: 'method_not_allowed',
      error: `This resource has ${allow}, OPTIONS.`,
    });
  }
});

test('a response of another type than asked for is 406, another spelling of a path 404', async (t) => {
  const server = await startServer(t);
  const body = { title: 'a', content: 'b' };
  const picture = { Accept: 'image/png' };
  const made = await server.make('/posts', body);
  const lists = ['/posts', `${made}/comments`, '/api/articles', '/api/todos', '/files'];
  for (const [status, paths] of [
    [406, ['/', '/hello', made, ...lists]],
    [404, ['/todos', '/api', '/api/', '/api/todos/', '/API/todos', '/files/']],
  ] as const) {
    for (const path of paths) {
      assert.equal((await server.fetch(path, { headers: picture })).status, status, path);
    }
  }
  const headers = { Accept: 'text/html, application/json;q=0.1' };
  assert.equal((await server.fetch('/posts', { headers })).status, 200);
  // A POST never fails for its Accept (R6).
  await server.make('/posts', body, picture);
});

test('GET /hello: a plain text that begins with Hello (R32), and a request id of its own', async (t) => {
  const server = await startServer(t);
  const response = await server.fetch('/hello?anything=%zz');
  const text = await response.text();
  assert.match(text, /^Hello/);
  for (const [name, value] of Object.entries({
    'content-type': 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    'x-content-type-options': 'nosniff',
    'x-powered-by': null,
  })) {
    assert.equal(response.headers.get(name), value);
  }
  const ids = new Set([response.headers.get('x-request-id')]);
  for (const path of ['/hello', '/nowhere', '/posts']) {
    ids.add((await server.fetch(path)).headers.get('x-request-id'));
  }
  assert.deepEqual([ids.size, ids.has(null)], [4, false]);
});

test('GET /: the routes as JSON, and for a browser a page whose links lead somewhere', async (t) => {
  const server = await startServer(t);
  const json = await server.fetch('/');
  assert.equal(json.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.equal(json.headers.get('vary'), 'Accept');
  const { name, routes, ...more } = (await json.json()) as Record<string, unknown>;
  const others = { ui: '/graphql-ui/', reference: '/docs/', openapi: '/openapi.json' };
  assert.deepEqual([name, more], ['Inkwell', others]);
  for (const route of ['GET /', 'POST /graphql', 'GET /posts/{id}', 'GET /readyz']) {
    assert.ok((routes as string[]).includes(route), route);
  }
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const response = await server.fetch('/', { headers: { Accept: accept } });
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'/);
  const page = await response.text();
  assert.doesNotMatch(page, /<script(?![^>]* src=)/);
  const found = page.matchAll(/(?:href|src)="(\/[^"#]+)/g);
  const links = new Set(Array.from(found, ([, link = '']) => link));
  for (const link of ['/graphql-ui/', '/docs/', '/docs/home.js']) assert.ok(links.has(link), link);
  for (const link of links) assert.equal((await server.fetch(link)).status, 200, link);
  const terms = Array.from(page.matchAll(/<dt>(.+?)<\/dt>/gs), ([, term = '']) => term);
  const listed = terms.map((term) => term.replaceAll(/<[^>]+>/g, '').trim());
  assert.deepEqual(listed.toSorted(), (routes as string[]).toSorted());
  for (const { name: route, operation } of entries) {
    const link = `<a href="/docs/#/${operation.tags[0]}/${operation.operationId}"`;
    assert.ok(terms[listed.indexOf(route)]?.includes(link), `${route}: ${link}`);
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
    assert.deepEqual(response.headersDistinct['vary'], [vary]);
  }
});

test('GET /graphql without a query leads a browser to the UI, and no other client', async (t) => {
  const server = await startServer(t);
  for (const [query, Accept, ...expected] of [
    ['', 'text/html,application/xml;q=0.9,*/*;q=0.8', 303, '/graphql-ui/'],
    ['', '*/*', 400, null],
    ['', 'application/json, text/html', 400, null],
    ['?query={__typename}', 'text/html', 406, null],
  ] as const) {
    const init = { headers: { Accept }, redirect: 'manual' } as const;
    const { status, headers } = await server.fetch(`/graphql${query}`, init);
    assert.deepEqual([status, headers.get('location')], expected, Accept);
    if (status === 303) assert.equal(headers.get('vary'), 'Accept');
  }
});
