import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../support/server.ts';

describe('the browser UI', () => {
  const ends: (() => Promise<void>)[] = [];
  let server: TestServer;
  let page = '';
  before(async () => {
    server = await startServer({ after: (end) => ends.push(end) });
    page = await textOf('/graphql-ui/');
  });
  after(async () => {
    for (const end of ends) await end();
  });

  const get = (target: string): Promise<Response> => server.fetch(target, { redirect: 'manual' });
  const textOf = async (target: string): Promise<string> => (await get(target)).text();

  it('redirects /graphql-ui to /graphql-ui/ and keeps the query', async () => {
    for (const query of ['', '?a=b']) {
      const response = await get(`/graphql-ui${query}`);
      assert.deepEqual([response.status, await response.text()], [308, ''], query);
      assert.equal(response.headers.get('location'), `/graphql-ui/${query}`, query);
    }
  });

  it('serves every file that its page names', async () => {
    const names = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name);
    assert.ok(names.length > 10, 'the page names its scripts and styles');
    for (const name of names.filter((found) => found !== './')) {
      assert.equal((await get(`/graphql-ui/${name}`)).status, 200, name);
    }
  });

  it('names its language', () => assert.match(page, /<html lang="en">/));

  it('names no other host in its page and has no inline script', async () => {
    assert.doesNotMatch(page, /(?:src|href)="(?:[a-z]+:)?\/\//i);
    assert.doesNotMatch(page, /<script(?![^>]* src=)/i);
    assert.doesNotMatch(page, /\son[a-z]+=/i);
  });

  it('lets the page load, reach and be framed by nothing but itself', async () => {
    for (const path of ['', 'main.js', 'options.js', 'styles.css']) {
      const { headers } = await get(`/graphql-ui/${path}`);
      const policy = headers.get('content-security-policy')?.split('; ') ?? [];
      assert.ok(policy.includes("default-src 'none'"), path);
      assert.ok(policy.includes("script-src 'self'"), path);
      assert.ok(policy.includes("connect-src 'self'"), path);
      assert.ok(policy.includes("frame-ancestors 'none'"), path);
      assert.equal(headers.get('x-frame-options'), 'DENY', path);
      assert.equal(headers.get('referrer-policy'), 'no-referrer', path);
    }
  });

  it('works out its addresses from its own', async () => {
    const options = await textOf('/graphql-ui/options.js');
    assert.match(options, /new URL\('\.\.\/graphql', document\.baseURI\)/);
    assert.doesNotMatch(options, /localhost|127\.0\.0\.1|8080/);
  });

  it('is served under each spelling of a path that is the same', async () => {
    const same = '/%67raphql-ui/index.html /graphql-ui/%69ndex%2Ehtml /%67raphql-ui/';
    for (const path of same.split(' ')) {
      assert.equal(await textOf(path), page, path);
    }
    const others =
      '/graphql-ui%2Findex.html /graphql-ui/x%2F..%2Findex.html /graphql-ui/nothing.js';
    const above = ['..%2Fserver.js', '%2e%2e%2Fserver.js', '..%2F..%2Fpackage.json'];
    for (const path of others.split(' ').concat(above.map((name) => `/graphql-ui/${name}`))) {
      assert.equal((await get(path)).status, 404, path);
    }
  });
});
