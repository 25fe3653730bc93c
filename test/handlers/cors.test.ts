/** Pages of allowed origins read every response; those of others get none, and nothing by default. */

import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { connectRaw, type RawResponse } from '../support/raw-client.ts';
import { type Sent, startServer, type TestServer } from '../support/server.ts';
import { askUpgrade, upgradeLines } from '../support/ws-clients.ts';

const page = 'https://ui.example';
const env = { ALLOWED_ORIGINS: `${page}, https://other.example` };

/** A request by hand: `fetch` of Node leaves some of these headers out. */
const asker = (t: TestContext, server: TestServer) => async (line: string, headers: Sent) => {
  const client = await connectRaw(t, server.port);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const fixed = ['Host: here.example', 'Connection: close'];
  client.send([`${line} HTTP/1.1`, ...fixed, ...lines, '', '']);
  return client.response(line.split(' ')[0]);
};

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

test('without ALLOWED_ORIGINS a preflight is an OPTIONS like any', async (t) => {
  const send = asker(t, await startServer(t));
  for (const line of ['GET /hello', 'GET /posts', 'GET /nothing', 'HEAD /posts']) {
    assert.deepEqual(sharing(await send(line, { Origin: page })), {}, line);
  }
  const response = await send('OPTIONS /posts', preflightOf('POST'));
  assert.equal(response.status, 204);
  assert.equal(response.headers.get('allow'), 'GET, POST, HEAD, OPTIONS');
  assert.deepEqual(sharing(response), {});
});

suite('with a list of origins', () => {
  test('a page of one of them may read every response, the refused ones too', async (t) => {
    const server = await startServer(t, { env });
    const send = asker(t, server);
    for (const [status, lines, Accept = '*/*'] of [
      [200, 'GET /hello; GET /posts; HEAD /api/articles; GET /api/multiparts'],
      [308, 'GET /articles/1'],
      [401, 'GET /profile'],
      [404, 'GET /nothing; GET /comments/1; OPTIONS /nothing'],
      [405, 'DELETE /hello'],
      [406, 'GET /posts', 'text/html'],
      [415, 'POST /posts'],
    ] as const) {
      for (const line of lines.split('; ')) {
        const response = await send(line, { Origin: page, Accept });
        assert.deepEqual([response.status, sharing(response)], [status, shared], line);
      }
    }
    // What a response depends on beside the origin is named too.
    const query = '/graphql?query={__typename}';
    for (const path of ['/graphql/schema.graphql', '/', query, query, '/graphql']) {
      const { headers } = await server.fetch(path, { headers: { Origin: page } });
      assert.equal(headers.get('access-control-allow-origin'), page, path);
      assert.equal(headers.get('vary'), 'Origin, Accept', path);
    }
  });

  test('other pages, and clients that are no page, learn only that it depends', async (t) => {
    const send = asker(t, await startServer(t, { env }));
    for (const Origin of ['https://evil.example', 'null', `${page}.evil.example`, `${page}:1`]) {
      for (const line of ['GET /posts', 'GET /nothing']) {
        assert.deepEqual(sharing(await send(line, { Origin })), { vary: 'Origin' }, Origin);
      }
      const intoPrivate = { 'Access-Control-Request-Private-Network': 'true' };
      const preflight = { ...preflightOf('POST'), ...intoPrivate, Origin };
      const refused = await send('OPTIONS /posts', preflight);
      assert.deepEqual(sharing(refused), { vary: 'Origin' }, Origin);
      assert.equal(refused.headers.get('allow'), 'GET, POST, HEAD, OPTIONS', Origin);
    }
    assert.deepEqual(sharing(await send('GET /posts', {})), { vary: 'Origin' });
  });

  test('a preflight is answered for every path, and may be kept', async (t) => {
    const send = asker(t, await startServer(t, { env }));
    const expected = {
      ...shared,
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers': '*, Authorization',
      'access-control-max-age': '7200',
    };
    for (const path of ['/posts', '/graphql', '/api/multiparts/list', '/nothing']) {
      const response = await send(`OPTIONS ${path}`, preflightOf('PATCH'));
      assert.deepEqual([response.status, response.body.length], [204, 0], path);
      assert.deepEqual(sharing(response), expected, path);
    }
    const intoPrivate = { 'Access-Control-Request-Private-Network': 'true' };
    const allowed = await send('OPTIONS /posts', { ...preflightOf('GET'), ...intoPrivate });
    assert.equal(sharing(allowed)['access-control-allow-private-network'], 'true');
  });

  test('an event stream, and a response that closes its connection, say so too', async (t) => {
    const server = await startServer(t, { env: { ...env, BODY_BYTES_MAX: '1024' } });
    const query = encodeURIComponent('subscription { commentAdded { id } }');
    const headers = { Origin: page, Accept: 'text/event-stream' };
    const stream = await server.fetch(`/graphql?query=${query}`, { headers });
    const large = await server.send('POST', '/posts', 'x'.repeat(2_000), headers);
    assert.deepEqual([stream.status, large.status], [200, 413]);
    for (const response of [stream, large]) {
      assert.equal(response.headers.get('access-control-allow-origin'), page);
      await response.body?.cancel();
    }
  });
});

test('with an asterisk every page may read, send a form, and open a socket', async (t) => {
  const server = await startServer(t, { env: { ALLOWED_ORIGINS: '*' } });
  const send = asker(t, server);
  const { vary: _vary, ...rest } = shared;
  const all = { ...rest, 'access-control-allow-origin': '*' };
  for (const headers of [{ Origin: page }, { Origin: 'null' }, {}]) {
    assert.deepEqual(sharing(await send('GET /posts', headers)), all, JSON.stringify(headers));
  }
  const preflight = sharing(await send('OPTIONS /posts', preflightOf('PUT')));
  assert.equal(preflight['access-control-allow-origin'], '*');
  assert.equal(preflight['access-control-max-age'], '7200');
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

test('what is refused before there is a request has Date, and is for the page to read (R6a)', async (t) => {
  const server = await startServer(t, { env });
  const origin = `Origin: ${page}`;
  const foreign = 'Origin: https://foreign.example';
  const long = `Cookie: ${'a'.repeat(20_000)}`;
  const chunked = 'Transfer-Encoding: chunked';
  const version = upgradeLines({ 'Sec-WebSocket-Version': '12' });
  const keyless = upgradeLines({ 'Sec-WebSocket-Key': undefined });
  const rows: readonly (readonly [name: string, status: number, ...lines: string[]])[] = [
    ['headers that are too large, Origin first', 431, 'GET / HTTP/1.1', origin, long],
    ['headers that are too large, Origin last', 431, 'GET / HTTP/1.1', long, origin],
    ['too many lines', 431, 'GET / HTTP/1.1', origin, ...Array<string>(101).fill('A: b')],
    ['a header without a colon', 400, 'GET / HTTP/1.1', 'A', `origin:${page} `],
    ['two kinds of length', 400, 'POST / HTTP/1.1', 'Content-Length: 1', chunked, origin],
    ['a coding behind chunked', 400, 'POST / HTTP/1.1', origin, `${chunked}, gzip`],
    ['a bad chunk', 400, 'POST /posts HTTP/1.1', 'Host: a', origin, chunked, '', 'x'],
    ['a method that nobody knows', 501, 'FOO / HTTP/1.1', origin],
    ['CONNECT', 405, 'CONNECT a:1 HTTP/1.1', 'Host: a', origin],
    ['a handshake of another version', 400, ...version, origin],
    ['a handshake without a key', 400, ...keyless, origin],
    ['a handshake on another path', 404, ...upgradeLines({}, '/'), origin],
    ['of another origin', 431, 'GET / HTTP/1.1', foreign, long],
    ['of another origin, a handshake', 404, ...upgradeLines({}, '/'), foreign],
  ];
  for (const [name, status, ...lines] of rows) {
    const client = await connectRaw(t, server.port);
    const response = await client.ask(lines);
    const expected = lines.includes(foreign) ? { vary: 'Origin' } : shared;
    assert.deepEqual([response.status, sharing(response)], [status, expected], name);
    assert.ok(Date.parse(response.headers.get('date') ?? '') > 0, name);
    assert.ok(response.headers.get('x-request-id'), name);
    await client.ended();
  }
  // Nor what comes behind another request.
  const client = await connectRaw(t, server.port);
  client.send(['GET /hello HTTP/1.1', 'Host: a', origin, '', 'rubbish']);
  assert.deepEqual(sharing(await client.response()), shared);
  assert.deepEqual(sharing(await client.response()), { vary: 'Origin' });
});
