/** One stored file by its name: whole, in ranges, only where it is new, and its removal. */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import * as fc from 'fast-check';
import { toByteRange } from '../../dist/http/range.js';
import { withCode } from '../support/errors.ts';
import { file, form, postForm, refusal, stored } from '../support/files.ts';
import { pluck, times } from '../support/lists.ts';
import { type Sent, startServer, type TestServer } from '../support/server.ts';

const text = 'The quick brown fox jumps over the lazy dog.';

async function put(server: TestServer, name: string, content: Buffer | string): Promise<string> {
  const sent = await postForm(server, 'list', form({ any: file(content, name) }));
  assert.equal(sent.status, 200);
  return `/api/multiparts/${encodeURIComponent(name)}`;
}

const tagOf = async (server: TestServer, path: string): Promise<string> =>
  (await server.fetch(path)).headers.get('etag') ?? '';

suite('GET /api/multiparts/{name}', () => {
  test('gives the bytes with their type, name and length', async (t) => {
    const server = await startServer(t);
    const octets = 'application/octet-stream';
    const odd = '%C3%A4%20%2520%20%22q%22.txt';
    for (const [name, type, disposition] of [
      ['a.txt', 'text/plain', `filename="a.txt"; filename*=UTF-8''a.txt`],
      ['B.SVG', 'application/svg+xml', `filename="B.SVG"; filename*=UTF-8''B.SVG`],
      ['ä %20 "q".txt', 'text/plain', `filename="_ _20 _q_.txt"; filename*=UTF-8''${odd}`],
      ["it's (1)*", octets, `filename="it's (1)*"; filename*=UTF-8''it%27s%20%281%29%2A`],
      ['simple.txt', 'text/plain', `filename="simple.txt"; filename*=UTF-8''simple.txt`],
    ] as const) {
      const response = await server.fetch(await put(server, name, text));
      assert.equal(await response.text(), text, name);
      for (const [header, value] of Object.entries({
        'content-type': type,
        'content-disposition': `attachment; ${disposition}`,
        'content-length': `${text.length}`,
        'accept-ranges': 'bytes',
        'cache-control': 'no-cache',
      })) {
        assert.equal(response.headers.get(header), value, name);
      }
    }
    const path = await put(server, 'a.txt', text);
    const head = await server.fetch(path, { method: 'HEAD', headers: { Range: 'bytes=0-0' } });
    assert.deepEqual([head.status, head.headers.get('content-length')], [200, `${text.length}`]);
    assert.ok(head.headers.get('etag'));
    const bytes = Buffer.alloc(3_000_001, 'abcdefg');
    const large = await server.fetch(await put(server, 'large', bytes));
    assert.ok(Buffer.from(await large.arrayBuffer()).equals(bytes));
    const empty = await server.fetch(await put(server, 'empty', ''));
    assert.deepEqual([empty.headers.get('content-length'), await empty.text()], ['0', '']);
  });

  test('a name that is not stored is 404, and so is one that looks like a path', async (t) => {
    const server = await startServer(t);
    await put(server, 'a.txt', text);
    for (const name of ['b.txt', 'A.txt', 'abc.text', '..%2Fa.txt', '%2Fetc%2Fpasswd', '%00', '']) {
      const { status } = await server.fetch(`/api/multiparts/${name}`);
      assert.equal(status, 404, name);
    }
    assert.equal((await server.fetch('/api/multiparts/%zz')).status, 400);
  });

  test('a tag changes with each upload, and only then', async (t) => {
    const server = await startServer(t);
    const path = await put(server, 'a.txt', text);
    const first = await tagOf(server, path);
    assert.match(first, /^"[^"]+"$/);
    assert.equal(await tagOf(server, path), first);
    const ask = (value: string): Promise<Response> =>
      server.fetch(path, { headers: { 'If-None-Match': value } });
    for (const value of [first, `W/${first}`, `"x", ${first}`, '*']) {
      const response = await ask(value);
      assert.deepEqual([response.status, await response.text()], [304, ''], value);
      assert.equal(response.headers.get('etag'), first, value);
      assert.equal(response.headers.get('cache-control'), 'no-cache', value);
    }
    assert.equal((await ask('"x"')).status, 200);
    await put(server, 'a.txt', text);
    assert.notEqual(await tagOf(server, path), first);
    assert.equal((await ask(first)).status, 200);
    for (const method of ['GET', 'HEAD']) {
      const stale = await server.fetch(path, { method, headers: { 'If-Match': first } });
      assert.equal(stale.status, 412, method);
    }
  });
});

suite('Range', () => {
  test('one range is 206 with its place, one beyond the end 416, any other the whole', async (t) => {
    const server = await startServer(t);
    const [path, empty] = [await put(server, 'a.txt', text), await put(server, 'empty', '')];
    const ask = (Range: string, from = path) => server.fetch(from, { headers: { Range } });
    for (const [range, start, end] of [
      ['bytes=0-0', 0, 1],
      ['bytes=4-8', 4, 9],
      ['bytes=40-', 40, 44],
      ['bytes=-4', 40, 44],
      ['bytes=-999', 0, 44],
      ['bytes=10-999999999999999999999', 10, 44],
      ['BYTES= 1-2 ', 1, 3],
    ] as const) {
      const response = await ask(range);
      const { status, headers } = response;
      assert.deepEqual([status, await response.text()], [206, text.slice(start, end)], range);
      assert.equal(headers.get('content-range'), `bytes ${start}-${end - 1}/44`);
      // Some proxies would compress the part, whose place is one of the whole (RFC 9110 §7.7).
      assert.equal(headers.get('cache-control'), 'no-cache, no-transform');
      assert.equal(headers.get('content-length'), `${end - start}`);
    }
    for (const range of ['bytes=44-', 'bytes=44-50', 'bytes=-0', `bytes=${'9'.repeat(400)}-`]) {
      const response = await ask(range);
      assert.equal(response.headers.get('content-range'), 'bytes */44', range);
      assert.deepEqual(await refusal(response), [416, 'range_not_satisfiable'], range);
    }
    const ranges = 'bytes=0-0,2-2 bytes=5-4 bytes= bytes=- lines=0-1 0-1 bytes=a-';
    for (const range of ranges.split(' ')) {
      const response = await ask(range);
      assert.deepEqual([response.status, await response.text()], [200, text], range);
    }
    assert.equal((await ask('bytes=0-', empty)).status, 416);
    assert.equal((await ask('bytes=-1', empty)).status, 200);
  });

  test('If-Range gives the range of the same file, and all of another', async (t) => {
    const server = await startServer(t);
    const path = await put(server, 'a.txt', text);
    const etag = await tagOf(server, path);
    const others = ['"x"', `W/${etag}`, 'Sun, 22 Nov 2026 03:00:00 GMT'];
    for (const [headers, inside, beyond] of [
      [{ 'If-Range': etag }, 206, 416],
      ...others.map((other) => [{ 'If-Range': other }, 200, 200] as const),
      [{ 'If-None-Match': etag }, 304, 304],
    ] as const) {
      for (const [Range, status] of [
        ['bytes=0-2', inside],
        ['bytes=99-', beyond],
      ] as const) {
        const response = await server.fetch(path, { headers: { Range, ...headers } });
        assert.equal(response.status, status, JSON.stringify(headers));
      }
    }
  });

  test('any range is cut as RFC 9110 §14.1.2 says', () => {
    const number = fc.nat({ max: 12 });
    fc.assert(
      fc.property(fc.option(number), fc.option(number), number, (first, last, size) => {
        fc.pre(first !== null || last !== null);
        const header = `bytes=${first ?? ''}-${last ?? ''}`;
        const asked = times(size).filter((at) =>
          first === null ? at >= size - (last ?? 0) : at >= first && at <= (last ?? size),
        );
        const isInvalid = first !== null && last !== null && last < first;
        if (isInvalid || (first === null && size === 0 && last !== 0)) {
          assert.equal(toByteRange(header, size), undefined);
        } else if (asked.length === 0) {
          assert.throws(() => toByteRange(header, size), withCode('range_not_satisfiable'));
        } else {
          const range = toByteRange(header, size);
          assert.deepEqual(times(size).slice(range?.start, range?.end), asked);
        }
      }),
    );
  });
});

suite('DELETE and replacement of a file', () => {
  test('a file is removed, in the version that is named; a second time it is 404', async (t) => {
    const server = await startServer(t);
    const path = await put(server, 'a.txt', text);
    await put(server, 'b.txt', text);
    const first = await tagOf(server, path);
    await put(server, 'a.txt', 'newer');
    const remove = (tag: string): Promise<Response> =>
      server.fetch(path, { method: 'DELETE', headers: { 'If-Match': tag } });
    assert.deepEqual(await refusal(await remove(first)), [412, 'precondition_failed']);
    assert.equal(await (await server.fetch(path)).text(), 'newer');
    const removed = await remove(await tagOf(server, path));
    assert.deepEqual([removed.status, await removed.text()], [204, '']);
    for (const method of ['GET', 'DELETE']) {
      const refused = await refusal(await server.fetch(path, { method }));
      assert.deepEqual(refused, [404, 'not_found'], method);
    }
    assert.deepEqual(pluck(await stored(server), 0), ['b.txt']);
  });

  test('an upload replaces the version that is named, and no part of a file', async (t) => {
    const server = await startServer(t);
    const path = await put(server, 'a.txt', text);
    const etag = await tagOf(server, path);
    const send = async (name: string, headers: Sent) => {
      const body = form({ part: file('newer', name) });
      return server.fetch('/api/multiparts/simple', { method: 'POST', body, headers });
    };
    for (const [name, headers, code] of [
      ['a.txt', { 'If-Match': '"x"' }],
      ['a.txt', { 'If-Match': `W/${etag}` }],
      ['b.txt', { 'If-Match': '*' }],
      ['a.txt', { 'If-None-Match': '*' }],
      ['a.txt', { 'If-None-Match': `"x", ${etag}` }],
      ['a.txt', { 'Content-Range': 'bytes 0-4/10' }, 'malformed_request'],
    ] as const) {
      const [, found] = await refusal(await send(name, headers));
      assert.equal(found, code ?? 'precondition_failed', JSON.stringify(headers));
    }
    assert.equal(await (await server.fetch(path)).text(), text);
    assert.equal((await send('a.txt', { 'If-Match': etag, 'If-None-Match': '"x"' })).status, 200);
    assert.equal(await (await server.fetch(path)).text(), 'newer');
    assert.equal((await send('b.txt', { 'If-None-Match': '*' })).status, 200);
  });

  test('a download that is under way stays whole', async (t) => {
    const server = await startServer(t);
    const path = await put(server, 'large', Buffer.alloc(8_000_000, 'x'));
    const response = await server.fetch(path);
    assert.equal((await server.fetch(path, { method: 'DELETE' })).status, 204);
    assert.equal((await response.arrayBuffer()).byteLength, 8_000_000);
  });

  test('the paths of the two uploads stay what they were', async (t) => {
    const server = await startServer(t);
    await put(server, 'simple', 'found among all');
    for (const path of ['simple', 'list', '%73imple', 'lis%74']) {
      for (const method of ['GET', 'DELETE']) {
        const response = await server.fetch(`/api/multiparts/${path}`, { method });
        assert.equal(response.headers.get('allow'), 'POST, OPTIONS', method);
        assert.equal(response.status, 405, method);
      }
    }
    const all = await (await server.fetch('/api/multiparts')).text();
    assert.match(all, /filename="simple"[^]*found among all/);
  });
});
