/** No route takes what a browser sends for a page of another site without asking first (R27). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesOnDisk, refusal, stored } from '../support/files.ts';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { connectRaw } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';

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

const [own, site] = [{ 'Sec-Fetch-Site': 'same-origin' }, { 'Sec-Fetch-Site': 'cross-site' }];
const same = { 'Sec-Fetch-Site': 'same-site' };
const refused = {
  'with a foreign origin': { Origin: 'https://evil.example' },
  'with the origin null': { Origin: 'null' },
  'with the host on another port': { Origin: 'http://127.0.0.1:1' },
  'from another site, without an origin': site,
  'from another site, with the origin of this host': { Origin: 'http://127.0.0.1', ...site },
  'from the same site, without an origin': same,
  'from a page of no origin on the same site': { Origin: 'null', ...same },
  'with two labels for a star': { Origin: 'https://a.b.star.example' },
  'with no label for a star': { Origin: 'https://star.example' },
};
const taken = {
  'without an origin': {},
  'with an empty origin': { Origin: '', 'Sec-Fetch-Site': '' },
  'with an allowed origin': { Origin: 'https://ui.example' },
  'with an allowed origin on another site': { Origin: 'https://ui.example', ...site },
  'with the origin of PUBLIC_URL': { Origin: 'https://blog.example' },
  'from a page of this host': own,
  'from a page of this host that sends no referrer': { Origin: 'null', ...own },
  'from a page of this host behind a proxy on another port': { Origin: 'https://a:444', ...own },
  'typed by the user': { 'Sec-Fetch-Site': 'none' },
  'with one label for a star': { Origin: 'https://a.star.example', ...same },
};

for (const [path, parts] of forms) {
  test(`a form sent to ${path} is stored, or refused with 403`, async (t) => {
    const server = await startServer(t, { env });
    const body = multipartBody(parts);
    const type = [`Content-Type: ${multipartType}`, `Content-Length: ${body.length}`];
    const fixed = [`POST ${path} HTTP/1.1`, `Host: 127.0.0.1:${server.port}`, 'Connection: close'];
    for (const [name, headers] of Object.entries({ ...refused, ...taken })) {
      const isTaken = name in taken;
      // By hand: `fetch` sets some of these headers itself.
      const given = Object.entries(headers).map(([header, value]) => `${header}: ${value}`);
      const client = await connectRaw(t, server.port);
      const head = [...fixed, ...given, ...type, '', ''].join('\r\n');
      client.send(Buffer.concat([Buffer.from(head), body]));
      const response = await client.response();
      assert.equal(response.status, isTaken ? 200 : 403, name);
      if (!isTaken) assert.match(response.body.toString(), /foreign_origin|BAD_USER_INPUT/);
      assert.equal((await stored(server)).length, isTaken ? 1 : 0, name);
      assert.equal((await filesOnDisk(server)).length, isTaken ? 1 : 0, name);
      await server.fetch('/api/multiparts/a.txt', { method: 'DELETE' });
    }
  });
}

test('what else a page can send without asking is no type that a route takes', async (t) => {
  const server = await startServer(t);
  const lists = ['/posts', '/api/todos', '/api/articles'];
  const contents = () => Promise.all(lists.map((path) => server.read<{ id: string }[]>(path)));
  const before = await contents();
  const others = ['/graphql', '/auth/login', `/posts/${before[0]?.[0]?.id}/comments`];
  const uploads = ['/api/multiparts/simple', '/api/multiparts/list'];
  for (const path of [...lists, ...others, ...uploads]) {
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
    if (uploads.includes(path)) continue;
    const broken = { method: 'POST', body: '{', headers: { 'Content-Type': 'application/json' } };
    assert.equal((await server.fetch(path, broken)).status, 400, path);
  }
  assert.deepEqual(await contents(), before);
});
