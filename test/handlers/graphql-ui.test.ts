/** The pages: the browser UI of GraphQL, and the API reference. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../support/server.ts';

test('the browser UI is whole, of this host alone, and under a strict policy', async (t) => {
  const server = await startServer(t);
  const get = (path: string): Promise<Response> => server.fetch(path, { redirect: 'manual' });
  const textOf = async (path: string): Promise<string> => (await get(path)).text();
  for (const query of ['', '?a=b']) {
    const { status, headers } = await get(`/graphql-ui${query}`);
    assert.deepEqual([status, headers.get('location')], [308, `/graphql-ui/${query}`]);
  }
  const page = await textOf('/graphql-ui/');
  const names = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name);
  assert.ok(names.length > 10, 'the page names its scripts and styles');
  for (const name of names.filter((found) => found !== './')) {
    assert.equal((await get(`/graphql-ui/${name}`)).status, 200, name);
  }
  assert.match(page, /<html lang="en">/);
  // No other host, and no inline script.
  for (const wrong of [
    /(?:src|href)="(?:[a-z]+:)?\/\//i,
    /<script(?![^>]* src=)/i,
    /\son[a-z]+=/i,
  ]) {
    assert.doesNotMatch(page, wrong);
  }
  for (const path of ['', 'main.js', 'options.js', 'styles.css']) {
    const { headers } = await get(`/graphql-ui/${path}`);
    const policy = headers.get('content-security-policy')?.split('; ') ?? [];
    for (const kind of ["script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]) {
      assert.ok(policy.includes(kind), `${path} ${kind}`);
    }
    assert.equal(policy[0], "default-src 'none'", path);
    assert.equal(headers.get('x-frame-options'), 'DENY', path);
    assert.equal(headers.get('referrer-policy'), 'no-referrer', path);
  }
  const options = await textOf('/graphql-ui/options.js');
  assert.match(options, /new URL\('\.\.\/graphql', document\.baseURI\)/);
  assert.doesNotMatch(options, /localhost|127\.0\.0\.1|8080/);
  // Under each spelling of a path that is the same.
  const same = '/%67raphql-ui/index.html /graphql-ui/%69ndex%2Ehtml /%67raphql-ui/';
  for (const path of same.split(' ')) assert.equal(await textOf(path), page, path);
  const others = 'x%2F..%2Findex.html nothing.js ..%2Fserver.js %2e%2e%2Fserver.js';
  for (const path of [
    ...others.split(' '),
    '..%2F..%2Fpackage.json',
    '../graphql-ui%2Findex.html',
  ]) {
    assert.equal((await get(`/graphql-ui/${path}`)).status, 404, path);
  }
});

test('the API reference comes under the same policy, from files of this host', async (t) => {
  const server = await startServer(t);
  const page = await server.fetch('/docs');
  assert.equal(page.url, `${server.url}/docs/`);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  const policy = (response: Response) => response.headers.get('content-security-policy');
  assert.equal(policy(page), policy(await server.fetch('/graphql-ui/')));
  const found = (await page.text()).matchAll(/(?:src|href)="(?!\.\.\/)([^"]+)"/g);
  const files = Array.from(found, ([, name = '']) => name);
  assert.equal(files.length, 6);
  const licences = ['LICENSE.txt', 'NOTICE.txt', 'swagger-ui-bundle.js.LICENSE.txt'];
  for (const name of [...files, ...licences]) {
    assert.match(name, /^[\w.-]+$/, name);
    assert.equal((await server.fetch(`/docs/${name}`)).status, 200, name);
  }
  assert.equal((await server.fetch('/docs/package.json')).status, 404);
});
