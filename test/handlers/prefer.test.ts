/** `Prefer: return=representation` on what stores something (R45). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { overloaded } from '../../dist/errors.js';
import type { HttpRequest } from '../../dist/http/message.js';
import { createRecordResponses } from '../../dist/records/record-responses.js';
import { file, form, refusal } from '../support/files.ts';
import { type Sent, startServer, type TestServer } from '../support/server.ts';
import { stores } from '../support/stores.ts';

type RecordDeps = Parameters<typeof createRecordResponses>[0];
const prefer = { Prefer: 'respond-async, Return="representation"' };

interface Entry {
  readonly name: string;
  readonly size: number;
  readonly type: string;
}

const upload = (
  { fetch }: TestServer,
  parts: Readonly<Record<string, File | string>>,
  headers: Sent = prefer,
): Promise<Response> => {
  const path = 'part' in parts ? 'simple' : 'list';
  return fetch(`/api/multiparts/${path}`, { method: 'POST', body: form(parts), headers });
};
const headersOf = ({ headers }: Response): readonly unknown[] =>
  ['preference-applied', 'vary', 'etag', 'content-type'].map((name) => headers.get(name));

for (const { name, skip, newUrl } of stores) {
  test(
    `a POST gives the record as its GET does, if that is preferred, ${name}`,
    { skip },
    async (t) => {
      const server = await startServer(t, { env: { STORE_URL: await newUrl(t) } });
      const [first] = await server.read<{ id: string }[]>('/posts');
      for (const [path, body] of [
        ['/posts', { title: 'A "title"', content: 'text' }],
        [`/posts/${first?.id}/comments`, { content: 'A comment.' }],
        ['/api/todos', { title: 'To do', completed: true }],
        ['/api/articles', { title: 'An article', tags: ['a'], other: { x: 1 } }],
        ['/api/articles', { title: 'With an id', id: 77 }],
      ] as const) {
        const made = await server.send('POST', path, body, { ...prefer, 'If-None-Match': '*' });
        assert.equal(made.status, 201, path);
        // That of a todo is absolute (R12).
        const found = await server.fetch(
          made.headers.get('location')?.replace(server.url, '') ?? '',
        );
        const [, , etag, type] = headersOf(found);
        assert.ok(etag, path);
        assert.deepEqual(headersOf(made), ['return=representation', 'Prefer', etag, type], path);
        assert.equal(await made.text(), await found.text(), path);
        for (const Prefer of ['', 'return=minimal', 'handling=lenient']) {
          const plain = await server.send('POST', path, body, Prefer === '' ? {} : { Prefer });
          const text = path.endsWith('comments') ? '[]' : '';
          assert.deepEqual([plain.status, await plain.text()], [201, text], `${path} ${Prefer}`);
          assert.deepEqual(headersOf(plain).slice(0, 3), [null, null, null], `${path} ${Prefer}`);
        }
      }
      // An upload that is sent again lists what has a name.
      const keyed = { ...prefer, 'Idempotency-Key': 'a' };
      const send = () => upload(server, { a: 'first', b: file('named', 'b.svg') }, keyed);
      const listed = (await (await send()).json()) as readonly Entry[];
      assert.deepEqual([listed.length, listed[1]?.name], [2, 'b.svg']);
      assert.deepEqual(await (await send()).json(), [listed[1]]);
      assert.equal((await server.read<Entry[]>('/files')).length, 2);
    },
  );
}

test('what is refused is refused with the preference too', async (t) => {
  const server = await startServer(t);
  for (const path of ['/posts', '/api/todos', '/api/articles']) {
    const refused = await server.send('POST', path, {}, prefer);
    assert.deepEqual(await refusal(refused), [422, 'invalid_body'], path);
    assert.equal(refused.headers.get('preference-applied'), null, path);
  }
});

test('an upload answers with what was stored as GET /files describes it', async (t) => {
  const server = await startServer(t);
  const plain = await upload(server, { z: file('old', 'c.txt') }, {});
  assert.deepEqual([plain.status, await plain.text()], [200, '']);
  assert.deepEqual(headersOf(plain).slice(0, 2), [null, null]);
  const [a, c] = [file('<svg/>', 'a.svg'), file('new', 'c.txt')];
  const several = await upload(server, { a, b: 'a text without a name', c });
  const json = 'application/json; charset=utf-8';
  assert.deepEqual(headersOf(several), ['return=representation', 'Prefer', null, json]);
  const given = (await several.json()) as readonly Entry[];
  assert.deepEqual([given[0]?.name, given[0]?.size, given.length], ['a.svg', 6, 3]);
  // This is how the name of a part without one is learned.
  assert.match(given[1]?.name ?? '', /^[\da-f-]{36}\.txt$/);
  const byName = (one: Entry, other: Entry): number => (one.name < other.name ? -1 : 1);
  const listed = await server.read<Entry[]>('/files');
  assert.deepEqual(given.toSorted(byName), listed.toSorted(byName));
  const one = await upload(server, { part: file('1', 'one.png'), name: 'x' });
  const [entry] = (await one.json()) as readonly Entry[];
  assert.deepEqual([entry?.name, entry?.type], ['one.png', 'image/png']);
});

test('what is stored is 201, without its record, where the store does not answer then', async () => {
  const responses = { read: () => ({}) };
  const { created } = createRecordResponses({ responses } as unknown as RecordDeps);
  const find = (): never => {
    throw overloaded('The store is away.');
  };
  const route = { key: 'post', find, toId: (text: string) => text, noun: 'post', toJson: String };
  const request = { header: () => prefer.Prefer } as unknown as HttpRequest;
  const responding = Promise.resolve(created(route, () => undefined)(request, '1', '/posts/1'));
  const told = await responding.then(({ status, body }) => [status, body], String);
  assert.deepEqual(told, [201, undefined]);
});
