/** The page that shows the API reference: its files, and the policy that it comes under. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startServer } from '../support/server.ts';

describe('the page of the reference', () => {
  it('comes under the policy of the browser UI, from files of this host', async (t) => {
    const server = await startServer(t);
    const page = await server.fetch('/docs');
    assert.equal(page.url, `${server.url}/docs/`);
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    const ui = await server.fetch('/graphql-ui/');
    const policy = page.headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'; script-src 'self';/);
    assert.equal(policy, ui.headers.get('content-security-policy'));
    const text = await page.text();
    const files = Array.from(
      text.matchAll(/(?:src|href)="(?!\.\.\/)([^"]+)"/g),
      ([, name = '']) => name,
    );
    assert.equal(files.length, 6);
    const licences = ['LICENSE.txt', 'NOTICE.txt', 'swagger-ui-bundle.js.LICENSE.txt'];
    for (const name of [...files, ...licences]) {
      assert.match(name, /^[\w.-]+$/, name);
      assert.equal((await server.fetch(`/docs/${name}`)).status, 200, name);
    }
    assert.equal((await server.fetch('/docs/package.json')).status, 404);
  });
});
