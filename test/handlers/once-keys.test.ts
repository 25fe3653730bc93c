/** R40: what is a key, and what is none. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { json, seen, send, under } from '../support/keyed.ts';
import { logIn } from '../support/login.ts';
import { multipartType } from '../support/multipart.ts';
import { ask, connectRaw } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';

const todosOf = async (url: string): Promise<string> => (await fetch(`${url}/api/todos`)).text();

describe('a key', () => {
  const valid: readonly (readonly [string, string])[] = [
    ['8e03978e-40d5', '"8e03978e-40d5"'],
    ['!~', '"!~"'],
    ['a"b', String.raw`"a\"b"`],
    [String.raw`a\b`, String.raw`"a\\b"`],
    ['k'.repeat(255), `"${'k'.repeat(255)}"`],
  ];
  const invalid = ['', '""', '"', '"a', 'a b', '"a b"', '"a"b', '"a";b=c', String.raw`"a\b"`];
  const invalidLines = ['Idempotency-Key: a\r\nIdempotency-Key: a', 'Idempotency-Key: é'];

  it('is the same, bare or quoted', async (t) => {
    const { url } = await startServer(t);
    const sent = { method: 'POST', path: '/api/todos', type: json, body: '{"title":"a"}' };
    for (const [bare, quoted] of valid) {
      await t.test(JSON.stringify([bare, quoted]), async () => {
        const first = await send(url, sent, under(bare));
        const again = await send(url, sent, under(quoted));
        assert.equal(again.headers.get('idempotency-replayed'), 'true', bare);
        assert.equal(again.headers.get('location'), first.headers.get('location'));
      });
    }
  });

  it('of any other form is refused, and nothing is stored', async (t) => {
    const { url, port } = await startServer(t);
    const before = await todosOf(url);
    const all = [...invalid, 'k'.repeat(256)].map((key) => `Idempotency-Key: ${key}`);
    for (const line of [...all, ...invalidLines]) {
      const head = `Host: a\r\nContent-Type: ${json}\r\nContent-Length: 13\r\n${line}`;
      const sent = `POST /api/todos HTTP/1.1\r\n${head}\r\n\r\n{"title":"a"}`;
      const { status, body } = await ask(t, port, sent);
      assert.equal(status, 400, line);
      assert.match(body.toString(), /"code":"invalid_idempotency_key"/, line);
    }
    assert.equal(await todosOf(url), before);
  });

  it('is refused before the files of an upload come', async (t) => {
    const { port } = await startServer(t);
    const client = await connectRaw(t, port);
    const head = [`Content-Type: ${multipartType}`, 'Content-Length: 1000000'];
    const lines = ['POST /api/multiparts/simple HTTP/1.1', 'Host: a', ...head];
    client.send([...lines, 'Idempotency-Key: a b', 'Expect: 100-continue']);
    assert.equal((await client.response()).status, 400);
  });

  it('counts for nothing in reads and in a login, and is used up by no request without a token', async (t) => {
    const server = await startServer(t, { env: { REQUIRE_AUTH: 'writes' } });
    const { url } = server;
    const login = { method: 'POST', path: '/auth/login', type: json };
    const body = '{"username":"user","password":"password"}';
    for (const path of ['/posts', '/api/todos', '/hello', '/graphql?query={__typename}']) {
      assert.equal((await send(url, { method: 'GET', path }, under('a b'))).status, 200, path);
    }
    assert.equal((await send(url, { ...login, body }, under('a b'))).status, 200);
    const sent = {
      method: 'POST',
      path: '/posts',
      type: json,
      body: '{"title":"a","content":"b"}',
    };
    assert.equal((await send(url, sent, under('k'))).status, 401);
    const headers = under('k', { authorization: `Bearer ${await logIn(server)}` });
    const [status, , replayed] = await seen(await send(url, sent, headers));
    assert.deepEqual([status, replayed], [201, null]);
  });

  it('adds nothing to the response where there is none', async (t) => {
    const { port } = await startServer(t);
    const head = `Host: a\r\nContent-Type: ${json}\r\nContent-Length: 13`;
    const { headers } = await ask(
      t,
      port,
      `POST /api/todos HTTP/1.1\r\n${head}\r\n\r\n{"title":"a"}`,
    );
    const { headers: plain } = await ask(t, port, 'OPTIONS /api/todos HTTP/1.1\r\nHost: a\r\n\r\n');
    const own = [...headers.keys()].filter((name) => !plain.has(name));
    assert.deepEqual(own, ['location', 'content-length']);
  });
});
