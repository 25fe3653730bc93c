/** `Prefer: return=representation` on what stores something (R45). */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite, test } from 'node:test';
import { file, form, refusal } from '../support/files.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { stores } from '../support/stores.ts';

const prefer = { Prefer: 'respond-async, Return="representation"' };

const upload = (
  [server, path]: readonly [TestServer, 'list' | 'simple'],
  parts: Readonly<Record<string, File | string>>,
  headers: Readonly<Record<string, string>> = prefer,
): Promise<Response> =>
  server.fetch(`/api/multiparts/${path}`, { method: 'POST', body: form(parts), headers });

/** Requests that create a record, by the path on which each is read. */
const creations = (post: string): readonly (readonly [path: string, body: object])[] => [
  ['/posts', { title: 'A "title"', content: 'text' }],
  [`/posts/${post}/comments`, { content: 'A comment.' }],
  ['/api/todos', { title: 'To do', completed: true }],
  ['/api/articles', { title: 'An article', tags: ['a'], other: { x: 1 } }],
  ['/api/articles', { title: 'With an id', id: 77 }],
];

for (const { name, skip, newUrl } of stores) {
  suite(`a POST that creates, ${name}`, { skip }, () => {
    test('gives the record as its GET does, if the client prefers that', async (t) => {
      const server = await startServer(t, { env: { STORE_URL: await newUrl(t) } });
      const [first] = (await (await server.fetch('/posts')).json()) as readonly { id: string }[];
      for (const [path, body] of creations(first?.id ?? '')) {
        const send = (headers: Readonly<Record<string, string>>): Promise<Response> => {
          const init = { method: 'POST', body: JSON.stringify(body) };
          const type = { 'Content-Type': 'application/json' };
          return server.fetch(path, { ...init, headers: { ...type, ...headers } });
        };
        const made = await send({ ...prefer, 'If-None-Match': '*' });
        assert.equal(made.status, 201, path);
        assert.equal(made.headers.get('preference-applied'), 'return=representation', path);
        assert.equal(made.headers.get('vary'), 'Prefer', path);
        const location = made.headers.get('location') ?? assert.fail();
        // That of a todo is absolute (R12).
        const found = await server.fetch(location.replace(server.url, ''));
        assert.equal(found.status, 200, path);
        for (const header of ['content-type', 'etag']) {
          assert.equal(made.headers.get(header), found.headers.get(header), `${path} ${header}`);
        }
        assert.equal(await made.text(), await found.text(), path);
        for (const [at, other] of [
          {},
          { Prefer: 'return=minimal' },
          { Prefer: 'handling=lenient' },
        ].entries()) {
          const plain = await send(other);
          assert.equal(plain.status, 201, `number ${at}`);
          assert.equal(await plain.text(), path.endsWith('comments') ? '[]' : '', `number ${at}`);
          for (const header of ['preference-applied', 'vary', 'etag']) {
            assert.equal(plain.headers.get(header), null, `${path} ${header}`);
          }
        }
      }
    });

    test('that is an upload lists what has a name when it is sent again', async (t) => {
      const server = await startServer(t, { env: { STORE_URL: await newUrl(t) } });
      const headers = { ...prefer, 'Idempotency-Key': randomUUID() };
      const send = () =>
        upload([server, 'list'], { a: 'first', b: file('named', 'b.svg') }, headers);
      const first = (await (await send()).json()) as readonly { name: string }[];
      assert.deepEqual([first.length, first[1]?.name], [2, 'b.svg']);
      const again = await send();
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
      assert.deepEqual(await again.json(), [first[1]]);
      const listed = (await (await server.fetch('/files')).json()) as readonly unknown[];
      assert.equal(listed.length, 2);
    });
  });
}

test('what is refused is refused with the preference too', async (t) => {
  const server = await startServer(t);
  const headers = { ...prefer, 'Content-Type': 'application/json' };
  for (const path of ['/posts', '/api/todos', '/api/articles']) {
    const refused = await server.fetch(path, { method: 'POST', body: '{}', headers });
    assert.deepEqual(await refusal(refused), [422, 'invalid_body'], path);
    assert.equal(refused.headers.get('preference-applied'), null, path);
  }
});

suite('an upload', () => {
  test('answers with what was stored as GET /files describes it', async (t) => {
    const server = await startServer(t);
    const plain = await upload([server, 'list'], { z: file('old', 'c.txt') }, {});
    assert.deepEqual([plain.status, await plain.text()], [200, '']);
    assert.equal(plain.headers.get('preference-applied'), null);
    assert.equal(plain.headers.get('vary'), null);
    const several = await upload([server, 'list'], {
      a: file('<svg/>', 'a.svg'),
      b: 'a text without a name',
      c: file('new', 'c.txt'),
    });
    assert.equal(several.status, 200);
    assert.equal(several.headers.get('content-type'), 'application/json; charset=utf-8');
    assert.equal(several.headers.get('preference-applied'), 'return=representation');
    assert.equal(several.headers.get('vary'), 'Prefer');
    const given = (await several.json()) as readonly { name: string; size: number }[];
    assert.deepEqual([given[0]?.name, given[0]?.size, given.length], ['a.svg', 6, 3]);
    // This is how the name of a part without one is learned.
    assert.match(given[1]?.name ?? '', /^[\da-f-]{36}\.txt$/);
    const listed = (await (await server.fetch('/files')).json()) as readonly { name: string }[];
    const byName = (one: { name: string }, other: { name: string }): number =>
      one.name < other.name ? -1 : 1;
    assert.deepEqual(given.toSorted(byName), listed.toSorted(byName));
    const one = await upload([server, 'simple'], { part: file('1', 'one.png'), name: 'x' });
    const [entry] = (await one.json()) as readonly { name: string; type: string }[];
    assert.deepEqual([entry?.name, entry?.type], ['one.png', 'image/png']);
  });
});
