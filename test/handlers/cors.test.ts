/** Pages of allowed origins read every response; those of others get none, and nothing by default. */

import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { connectRaw, type RawResponse } from '../support/raw-client.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { askUpgrade, upgradeLines } from '../support/ws-clients.ts';

const page = 'https://ui.example';
const env = { ALLOWED_ORIGINS: `${page}, https://other.example` };

/** A request by hand: `fetch` of Node leaves some of these headers out. */
type Ask = (line: string, headers: Readonly<Record<string, string>>) => Promise<RawResponse>;

function asker(t: TestContext, server: TestServer): Ask {
  return async (line, headers) => {
    const client = await connectRaw(t, server.port);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const fixed = ['Host: here.example', 'Connection: close'];
    client.send([`${line} HTTP/1.1`, ...fixed, ...lines, '', '']);
    return client.response(line.split(' ')[0]);
  };
}

/** What of a response is about other origins. */
function sharing(response: RawResponse): Record<string, string> {
  return Object.fromEntries(
    [...response.headers].filter(([name]) => /^(?:access-control-|vary)/.test(name)),
  );
}

const shared = {
  'access-control-allow-origin': page,
  'access-control-expose-headers':
    'Location, ETag, Link, Retry-After, X-Request-Id, Content-Disposition, Content-Range, ' +
    'Preference-Applied, Idempotency-Replayed, Accept-Ranges, WWW-Authenticate, Allow, Accept-Patch',
  vary: 'Origin',
};

const preflightOf = (method: string): Record<string, string> => ({
  Origin: page,
  'Access-Control-Request-Method': method,
  'Access-Control-Request-Headers': 'authorization,content-type,if-match,idempotency-key',
});

suite('without ALLOWED_ORIGINS', () => {
  test('no response says anything of origins, and a preflight is an OPTIONS like any', async (t) => {
    const send = asker(t, await startServer(t));
    for (const line of ['GET /hello', 'GET /posts', 'GET /nothing', 'HEAD /posts']) {
      assert.deepEqual(sharing(await send(line, { Origin: page })), {}, line);
    }
    const response = await send('OPTIONS /posts', preflightOf('POST'));
    assert.equal(response.status, 204);
    assert.equal(response.headers.get('allow'), 'GET, POST, HEAD, OPTIONS');
    assert.deepEqual(sharing(response), {});
  });
});

suite('with a list of origins', () => {
  test('a page of one of them may read every response, the refused ones too', async (t) => {
    const send = asker(t, await startServer(t, { env }));
    for (const [status, lines] of Object.entries({
      200: 'GET /hello; GET /posts; HEAD /api/articles; GET /api/multiparts',
      308: 'GET /articles/1',
      401: 'GET /profile',
      404: 'GET /nothing; GET /comments/1',
      405: 'DELETE /hello',
      415: 'POST /posts',
    })) {
      await t.test(status, async () => {
        for (const line of lines.split('; ')) {
          const response = await send(line, { Origin: page });
          assert.equal(response.status, Number(status), line);
          assert.deepEqual(sharing(response), shared, line);
        }
      });
    }
    const unacceptable = await send('GET /posts', { Origin: page, Accept: 'text/html' });
    assert.equal(unacceptable.status, 406);
    assert.deepEqual(sharing(unacceptable), shared);
  });

  test('what a response depends on beside the origin is named too', async (t) => {
    const server = await startServer(t, { env });
    const query = '/graphql?query={__typename}';
    for (const path of ['/graphql/schema.graphql', '/', query, query, '/graphql']) {
      const { headers } = await server.fetch(path, { headers: { Origin: page } });
      assert.equal(headers.get('access-control-allow-origin'), page, path);
      assert.equal(headers.get('vary'), 'Origin, Accept', path);
    }
  });

  test('other pages, and clients that are no page, learn only that it depends', async (t) => {
    const send = asker(t, await startServer(t, { env }));
    for (const origin of ['https://evil.example', 'null', `${page}.evil.example`, `${page}:1`]) {
      for (const line of ['GET /posts', 'GET /nothing']) {
        const response = await send(line, { Origin: origin });
        assert.deepEqual(sharing(response), { vary: 'Origin' }, `${line} ${origin}`);
      }
      const refused = await send('OPTIONS /posts', { ...preflightOf('POST'), Origin: origin });
      assert.deepEqual(sharing(refused), { vary: 'Origin' }, origin);
      assert.equal(refused.headers.get('allow'), 'GET, POST, HEAD, OPTIONS', origin);
    }
    assert.deepEqual(sharing(await send('GET /posts', {})), { vary: 'Origin' });
  });

  test('a preflight is answered for every path, and may be kept', async (t) => {
    const send = asker(t, await startServer(t, { env }));
    for (const path of ['/posts', '/graphql', '/api/multiparts/list', '/nothing']) {
      const response = await send(`OPTIONS ${path}`, preflightOf('PATCH'));
      assert.equal(response.status, 204, path);
      assert.deepEqual(
        sharing(response),
        {
          ...shared,
          'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
          'access-control-allow-headers': '*, Authorization',
          'access-control-max-age': '7200',
        },
        path,
      );
      assert.equal(response.body.length, 0, path);
    }
    const intoPrivate = { 'Access-Control-Request-Private-Network': 'true' };
    const name = 'access-control-allow-private-network';
    for (const [origin, allowed] of [
      [page, 'true'],
      ['https://evil.example', undefined],
    ] as const) {
      const headers = { ...preflightOf('GET'), ...intoPrivate, Origin: origin };
      const response = await send('OPTIONS /posts', headers);
      assert.equal(sharing(response)[name], allowed, origin);
    }
    const plain = await send('OPTIONS /nothing', { Origin: page });
    assert.equal(plain.status, 404);
    assert.deepEqual(sharing(plain), shared);
  });

  test('an event stream, and a response that closes its connection, say so too', async (t) => {
    const server = await startServer(t, { env: { ...env, BODY_BYTES_MAX: '1024' } });
    const stop = new AbortController();
    const response = await server.fetch('/graphql', {
      method: 'POST',
      signal: stop.signal,
      headers: { Origin: page, 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: '{"query":"subscription { commentAdded { id } }"}',
    });
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    assert.equal(response.headers.get('access-control-allow-origin'), page);
    stop.abort();
    const large = await server.fetch('/posts', {
      method: 'POST',
      headers: { Origin: page, 'Content-Type': 'application/json' },
      body: '"'.padEnd(2_000, 'x'),
    });
    assert.equal(large.status, 413);
    assert.equal(large.headers.get('access-control-allow-origin'), page);
  });
});

suite('with an asterisk', () => {
  const open = { ALLOWED_ORIGINS: '*' };

  test('every page may read, and the response is the same for all of them', async (t) => {
    const send = asker(t, await startServer(t, { env: open }));
    const { vary: _vary, ...rest } = shared;
    const all = { ...rest, 'access-control-allow-origin': '*' };
    for (const headers of [{ Origin: page }, { Origin: 'null' }, {}]) {
      assert.deepEqual(sharing(await send('GET /posts', headers)), all, JSON.stringify(headers));
    }
    const preflight = sharing(await send('OPTIONS /posts', preflightOf('PUT')));
    assert.equal(preflight['access-control-allow-origin'], '*');
    assert.equal(preflight['access-control-max-age'], '7200');
  });

  test('every page may send a form, and open a socket', async (t) => {
    const server = await startServer(t, { env: open });
    const body = multipartBody([part('a', 'x', { fileName: 'a.txt' })]);
    const fixed = { 'Sec-Fetch-Site': 'cross-site', 'Content-Type': multipartType };
    for (const Origin of [page, 'null']) {
      const init = { method: 'POST', headers: { Origin, ...fixed }, body };
      const response = await server.fetch('/api/multiparts/list', init);
      assert.equal(response.status, 200, Origin);
      assert.equal(response.headers.get('access-control-allow-origin'), '*', Origin);
      assert.equal((await askUpgrade(server.port, upgradeLines({ Origin }))).status, 101);
    }
  });
});

suite('refused before there is a request (R6a)', () => {
  const origin = `Origin: ${page}`;
  const long = `Cookie: ${'a'.repeat(20_000)}`;
  const chunked = 'Transfer-Encoding: chunked';
  const refused: Readonly<Record<string, readonly [status: number, lines: readonly string[]]>> = {
    'headers that are too large, Origin first': [431, ['GET / HTTP/1.1', origin, long]],
    'headers that are too large, Origin last': [431, ['GET / HTTP/1.1', long, origin]],
    'too many header lines': [431, ['GET / HTTP/1.1', origin, ...Array<string>(101).fill('A: b')]],
    'a header without a colon': [400, ['GET / HTTP/1.1', 'A', `origin:${page} `]],
    'two kinds of length': [
      400,
      ['POST / HTTP/1.1', 'Content-Length: 1', 'Transfer-Encoding: chunked', origin],
    ],
    'a coding behind chunked': [400, ['POST / HTTP/1.1', origin, `${chunked}, gzip`]],
    'a bad chunk': [400, ['POST /posts HTTP/1.1', 'Host: a', origin, chunked, '', 'x']],
    'a method that nobody knows': [501, ['FOO / HTTP/1.1', origin]],
    CONNECT: [405, ['CONNECT a:1 HTTP/1.1', 'Host: a', origin]],
    'a handshake of another version': [
      400,
      [...upgradeLines({ 'Sec-WebSocket-Version': '12' }), origin],
    ],
    'a handshake without a key': [
      400,
      [...upgradeLines({ 'Sec-WebSocket-Key': undefined }), origin],
    ],
    'a handshake on another path': [404, [...upgradeLines({}, '/'), origin]],
  };
  for (const [name, [status, lines]] of Object.entries(refused)) {
    test(`${name}: ${status} with Date, for the page to read`, async (t) => {
      const client = await connectRaw(t, startServer(t, { env }));
      const response = await client.ask(lines);
      assert.equal(response.status, status);
      assert.deepEqual(sharing(response), shared);
      assert.ok(Date.parse(response.headers.get('date') ?? '') > 0);
      assert.ok(response.headers.get('x-request-id'));
      await client.ended();
    });
  }

  test('pages of other origins get none, nor those behind another request', async (t) => {
    const server = await startServer(t, { env });
    for (const lines of [
      ['GET / HTTP/1.1', 'Origin: https://foreign.example', long],
      [...upgradeLines({}, '/'), 'Origin: https://foreign.example'],
    ]) {
      const response = await (await connectRaw(t, server.port)).ask(lines);
      assert.deepEqual(sharing(response), { vary: 'Origin' });
    }
    const client = await connectRaw(t, server.port);
    client.send(['GET /hello HTTP/1.1', 'Host: a', origin, '', 'rubbish']);
    assert.deepEqual(sharing(await client.response()), shared);
    assert.deepEqual(sharing(await client.response()), { vary: 'Origin' });
  });
});
