import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { createPages } from '../../dist/handlers/pages.js';
import type { HttpResponse, HttpRequest } from '../../dist/http/message.js';
import { withCode } from '../support/errors.js';
import { startServer } from '../support/server.js';

const { graphqlUi: ui } = createPages(new URL('../../dist/', import.meta.url));

function get(target: string): HttpResponse | Promise<HttpResponse> {
  const [path = '', query = ''] = target.split('?');
  const params = { '*': path.slice('/graphql-ui/'.length) };
  const request = { query, params, header: () => undefined } as unknown as HttpRequest;
  return path === '/graphql-ui' ? ui.redirect(request) : ui.file(request);
}

async function textOf(target: string): Promise<string> {
  const { body } = await get(target);
  // Unpacked as fast as it is read.
  assert.ok(body instanceof Readable);
  return text(body);
}

const page = async (): Promise<string> => textOf('/graphql-ui/');

function header(response: HttpResponse, name: string): string {
  return response.headers[response.headers.indexOf(name) + 1] ?? '';
}

describe('the browser UI', () => {
  it('redirects /graphql-ui to /graphql-ui/ and keeps the query', async () => {
    const { status, body } = await get('/graphql-ui');
    assert.deepEqual([status, body], [308, undefined]);
    assert.equal(header(await get('/graphql-ui'), 'Location'), '/graphql-ui/');
    assert.equal(header(await get('/graphql-ui?a=b'), 'Location'), '/graphql-ui/?a=b');
  });

  it('serves every file that its page names', async () => {
    const names = [...(await page()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name);
    assert.ok(names.length > 10, 'the page names its scripts and styles');
    for (const name of names.filter((found) => found !== './')) {
      assert.equal((await get(`/graphql-ui/${name}`)).status, 200, name);
    }
  });

  it('names no other host in its page and has no inline script', async () => {
    const html = await page();
    assert.doesNotMatch(html, /(?:src|href)="(?:[a-z]+:)?\/\//i);
    assert.doesNotMatch(html, /<script(?![^>]* src=)/i);
    assert.doesNotMatch(html, /\son[a-z]+=/i);
  });

  it('lets the page load, reach and be framed by nothing but itself', async () => {
    for (const path of ['', 'main.js', 'options.js', 'styles.css']) {
      const response = await get(`/graphql-ui/${path}`);
      const policy = header(response, 'Content-Security-Policy').split('; ');
      assert.ok(policy.includes("default-src 'none'"));
      assert.ok(policy.includes("script-src 'self'"));
      assert.ok(policy.includes("connect-src 'self'"));
      assert.ok(policy.includes("frame-ancestors 'none'"));
      assert.equal(header(response, 'X-Frame-Options'), 'DENY');
      assert.equal(header(response, 'Referrer-Policy'), 'no-referrer');
    }
  });

  it('works out its addresses from its own', async () => {
    const options = await textOf('/graphql-ui/options.js');
    assert.match(options, /new URL\('\.\.\/graphql', document\.baseURI\)/);
    assert.doesNotMatch(options, /localhost|127\.0\.0\.1|8080/);
  });

  it('is served under each spelling of a path that is the same', async (t) => {
    const server = await startServer(t);
    const same = '/%67raphql-ui/index.html /graphql-ui/%69ndex%2Ehtml /%67raphql-ui/';
    for (const path of same.split(' ')) {
      const response = await server.fetch(path);
      assert.equal(response.status, 200, path);
      assert.equal(await response.text(), await page());
    }
    for (const path of ['/graphql-ui%2Findex.html', '/graphql-ui/x%2F..%2Findex.html']) {
      assert.equal((await server.fetch(path)).status, 404, path);
    }
  });

  it('is not found under any other name', async () => {
    for (const name of ['nothing.js', '../server.js', '%2e%2e/server.js', '../../package.json']) {
      await assert.rejects(async () => get(`/graphql-ui/${name}`), withCode('not_found'), name);
    }
  });
});
