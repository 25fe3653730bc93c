import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../support/server.js';

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
  assert.doesNotMatch(page, /<script/);
  const links = Array.from(page.matchAll(/href="(\/[^"]+)"/g), ([, link = '']) => link);
  assert.equal(links.length, 2);
  for (const link of links) assert.equal((await server.fetch(link)).status, 200, link);
  const listed = Array.from(page.matchAll(/<dt>([^<]+)<\/dt>/g), ([, route = '']) => route);
  const { routes } = (await (await server.fetch('/')).json()) as { routes: readonly string[] };
  assert.deepEqual(listed.toSorted(), routes.toSorted());
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
