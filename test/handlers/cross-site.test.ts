/** No route takes what a browser sends for a page of another site without asking first (R27). */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { filesOnDisk, refusal, stored } from '../support/files.ts';
import { multipartBody, multipartType, part, type SentPart } from '../support/multipart.ts';
import { connectRaw, type RawResponse } from '../support/raw-client.ts';
import { startServer, type TestServer } from '../support/server.ts';

const operations = '{"query":"mutation ($f: Upload!) { upload(file: $f) }","variables":{"f":null}}';

const file = part('part', 'x', { fileName: 'a.txt' });

/** Every route that takes a form, with one that it stores. */
const forms = [
  ['/api/multiparts/simple', [file]],
  ['/api/multiparts/list', [file]],
  ['/graphql', [part('operations', operations), part('map', '{"part":["variables.f"]}'), file]],
] as const;

const env = {
  ALLOWED_ORIGINS: 'https://ui.example,https://*.star.example',
  PUBLIC_URL: 'HTTPS://Blog.Example:443',
};

/** By hand: `fetch` sets some of these headers itself. */
async function send(
  t: TestContext,
  server: TestServer,
  form: { readonly path: string; readonly parts: readonly SentPart[]; readonly headers: object },
): Promise<RawResponse> {
  const { path, parts, headers } = form;
  const body = multipartBody(parts);
  const lines = [`POST ${path} HTTP/1.1`, `Host: 127.0.0.1:${server.port}`, 'Connection: close'];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  lines.push(`Content-Type: ${multipartType}`, `Content-Length: ${body.length}`, '', '');
  const client = await connectRaw(t, server.port);
  client.send(Buffer.concat([Buffer.from(lines.join('\r\n')), body]));
  return client.response();
}

const own = { 'Sec-Fetch-Site': 'same-origin' };
const site = { 'Sec-Fetch-Site': 'cross-site' };
const refused = {
  'with a foreign origin': { Origin: 'https://evil.example' },
  'with the origin null': { Origin: 'null' },
  'with the host on another port': { Origin: 'http://127.0.0.1:1' },
  'from another site, without an origin': site,
  'from another site, with the origin of this host': { Origin: 'http://127.0.0.1', ...site },
  'from the same site, without an origin': { 'Sec-Fetch-Site': 'same-site' },
  'from a page of no origin on the same site': { Origin: 'null', 'Sec-Fetch-Site': 'same-site' },
  'with two labels for a star': { Origin: 'https://a.b.star.example' },
  'with no label for a star': { Origin: 'https://star.example' },
};
const taken = {
  'without an origin': {},
  'with an empty origin': { Origin: '', 'Sec-Fetch-Site': '' },
  'with an allowed origin': { Origin: 'https://ui.example' },
  'with an allowed origin on another site': { Origin: 'https://ui.example', ...site },
  'with the origin of PUBLIC_URL': { Origin: 'https://blog.example' },
  'from a page of this host': { 'Sec-Fetch-Site': 'same-origin' },
  'from a page of this host that sends no referrer': { Origin: 'null', ...own },
  'from a page of this host behind a proxy on another port': { Origin: 'https://a:444', ...own },
  'typed by the user': { 'Sec-Fetch-Site': 'none' },
  'with one label for a star': { Origin: 'https://a.star.example', 'Sec-Fetch-Site': 'same-site' },
};

for (const [path, parts] of forms) {
  for (const [isTaken, rows] of [[false, refused] as const, [true, taken] as const]) {
    const what = isTaken ? 'stored' : 'refused with 403, and nothing is stored';
    for (const [name, headers] of Object.entries(rows)) {
      test(`a form sent to ${path} ${name} is ${what}`, async (t) => {
        const server = await startServer(t, { env });
        const response = await send(t, server, { path, parts, headers });
        assert.equal(response.status, isTaken ? 200 : 403, response.body.toString());
        if (!isTaken) assert.match(response.body.toString(), /foreign_origin|BAD_USER_INPUT/);
        assert.equal((await stored(server)).length, isTaken ? 1 : 0);
        assert.equal((await filesOnDisk(server)).length, isTaken ? 1 : 0);
      });
    }
  }
}

test('what else a page can send without asking is no type that a route takes', async (t) => {
  const server = await startServer(t);
  const posts = (await (await server.fetch('/posts')).json()) as { id: string }[];
  const before = await contentOf(server);
  const others = '/graphql /posts /auth/login /api/todos /api/articles';
  const uploads = '/api/multiparts/simple /api/multiparts/list';
  for (const path of `${others} ${uploads} /posts/${posts[0]?.id}/comments`.split(' ')) {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', undefined]) {
      const response = await server.fetch(path, {
        method: 'POST',
        // Bytes have no type of their own that would be sent.
        body: Buffer.from('{"title":"t","content":"c","query":"{__typename}"}'),
        headers: type === undefined ? {} : { 'Content-Type': type },
      });
      const found = await refusal(response);
      assert.deepEqual(found, [415, 'unsupported_media_type'], `${path} ${type}`);
    }
    if (path.startsWith('/api/multiparts/')) continue;
    const broken = { method: 'POST', body: '{', headers: { 'Content-Type': 'application/json' } };
    assert.equal((await server.fetch(path, broken)).status, 400, path);
  }
  assert.equal(await contentOf(server), before);
});

async function contentOf(server: TestServer): Promise<string> {
  const paths = ['/posts', '/api/todos', '/api/articles'];
  const texts = paths.map(async (path) => (await server.fetch(path)).text());
  return (await Promise.all(texts)).join('\n');
}
