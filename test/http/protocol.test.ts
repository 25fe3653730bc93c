import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, connectRaw } from '../support/raw-client.js';
import { startServer } from '../support/server.js';
import { keepOthersServed } from '../support/prober.js';

keepOthersServed();

/** A request with one valid Host; `lines` are the request line and further headers. */
function request(first: string, ...lines: readonly string[]): string {
  return `${[first, 'Host: example.org', ...lines].join('\r\n')}\r\n\r\n`;
}

/** A JSON POST whose body is framed by the given header. */
function post(framing: string, body: string): string {
  return `${request('POST /posts HTTP/1.1', 'Content-Type: application/json', framing)}${body}`;
}

const validPost = '{"title":"a","content":"b"}';
const badHosts = ['', 'a b', 'a/b', 'user@a', 'a:80:80', 'a:port', '[::1', '"a"', 'a\u00e9', 'a?b'];
const badCodings = ['gzip, chunked', 'gzip', 'identity', 'xchunked'];

/** What is sent, and the status and code that answer it. The connection must end after each. */
const closing: readonly (readonly [string, string, number, string])[] = [
  ['no Host', 'GET /hello HTTP/1.1\r\n\r\n', 400, 'invalid_host'],
  ['two Hosts', request('GET /hello HTTP/1.1', 'Host: b'), 400, 'invalid_host'],
  ['one Host twice', request('GET /hello HTTP/1.1', 'HOST: example.org'), 400, 'invalid_host'],
  ['a bad Host in HTTP/1.0', 'GET /hello HTTP/1.0\r\nHost: a/b\r\n\r\n', 400, 'invalid_host'],
  ...badHosts.map((host) => {
    const text = `GET /hello HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    return [`the Host ${JSON.stringify(host)}`, text, 400, 'invalid_host'] as const;
  }),
  ...badCodings.map((coding) => {
    const text = post(`Transfer-Encoding: ${coding}`, '0\r\n\r\n');
    return [`Transfer-Encoding: ${coding}`, text, 501, 'not_implemented'] as const;
  }),
  [
    'a coding in a line of its own',
    post('Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
    501,
    'not_implemented',
  ],
  [
    'a Transfer-Encoding of nothing',
    post('Transfer-Encoding:', '0\r\n\r\n'),
    400,
    'malformed_request',
  ],
  [
    'chunked in HTTP/1.0',
    'POST /posts HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
    'malformed_request',
  ],
  ...['0.9', '2.0', '3.0', '1.2'].map((version) => {
    const text = request(`GET /hello HTTP/${version}`);
    return [`HTTP/${version}`, text, 505, 'http_version_not_supported'] as const;
  }),
  [
    'both framings',
    post('Content-Length: 5\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
    400,
    'malformed_request',
  ],
  ['two lengths', post('Content-Length: 2\r\nContent-Length: 3', '{} '), 400, 'malformed_request'],
  ...['+2', '-2', '2,2', '0x2', '99999999999999999999999'].map((length) => {
    const text = post(`Content-Length: ${length}`, '{}');
    return [`Content-Length: ${length}`, text, 400, 'malformed_request'] as const;
  }),
  ...['zz\r\n{}\r\n0\r\n\r\n', '-1\r\n{}\r\n', 'ffffffffffffffffff\r\n{}', '2\r\n{}xx\r\n'].map(
    (chunks) => {
      const text = post('Transfer-Encoding: chunked', chunks);
      return [`the chunks ${JSON.stringify(chunks)}`, text, 400, 'malformed_request'] as const;
    },
  ),
  ['a space before the colon', request('GET /hello HTTP/1.1', 'X : a'), 400, 'malformed_request'],
  ['a folded header', request('GET /hello HTTP/1.1', 'X: a\r\n b'), 400, 'malformed_request'],
  ['a NUL in a header', request('GET /hello HTTP/1.1', 'X: a\0b'), 400, 'malformed_request'],
  ['bare line feeds', 'GET /hello HTTP/1.1\nHost: a\n\n', 400, 'malformed_request'],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'malformed_request'],
  ['a fragment', request('GET /hello#x HTTP/1.1'), 400, 'malformed_request'],
  ['authority form', request('GET example.org:80 HTTP/1.1'), 400, 'malformed_request'],
  ['another scheme', request('GET ftp://a/hello HTTP/1.1'), 400, 'malformed_request'],
  ['user information', request('GET http://u@a/hello HTTP/1.1'), 400, 'malformed_request'],
  ['CONNECT', request('CONNECT example.org:80 HTTP/1.1'), 405, 'method_not_allowed'],
  [
    'a target over the headers limit',
    request(`GET /${'a'.repeat(20_000)} HTTP/1.1`),
    414,
    'target_too_long',
  ],
  [
    'a target of many packets',
    request(`GET /${'a'.repeat(500_000)} HTTP/1.1`),
    414,
    'target_too_long',
  ],
  [
    'a header over the limit',
    request('GET /hello HTTP/1.1', `X: ${'a'.repeat(20_000)}`),
    431,
    'headers_too_large',
  ],
  [
    'many headers over the limit',
    request('GET /hello HTTP/1.1', ...Array.from({ length: 6_000 }, () => 'ab: cd')),
    431,
    'headers_too_large',
  ],
  [
    'more than a hundred header lines, a Transfer-Encoding behind them',
    request(
      'POST /posts HTTP/1.1',
      ...Array.from({ length: 2_100 }, () => 'a:'),
      'Transfer-Encoding: gzip, chunked',
    ),
    431,
    'headers_too_large',
  ],
];

describe('refused, and the connection ends', { concurrency: true }, () => {
  for (const [name, text, status, code] of closing) {
    test(`${name}: ${status}, then the end of the connection`, async (t) => {
      const { port } = await startServer(t);
      const client = await connectRaw(t, port);
      const response = await client.ask(text);
      assert.equal(response.status, status);
      assert.equal(response.headers.get('connection'), 'close');
      assert.equal(response.headers.get('content-type'), 'application/problem+json');
      assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
      assert.ok(response.headers.get('x-request-id'));
      const problem = JSON.parse(response.body.toString()) as Record<string, unknown>;
      assert.deepEqual([problem['code'], problem['status']], [code, status]);
      await client.ended();
    });
  }
});

/** Refused without harm to the connection: the next request on it is answered. */
const refused: readonly (readonly [string, string, number])[] = [
  ['TRACE', request('TRACE /hello HTTP/1.1'), 405],
  ['an unknown expectation', request('GET /hello HTTP/1.1', 'Expect: junk'), 417],
  ['a long target', request(`GET /${'a'.repeat(8_000)} HTTP/1.1`), 414],
  [
    'two Authorization lines',
    request('GET /hello HTTP/1.1', 'Authorization: a', 'authorization: a'),
    400,
  ],
  [
    'two Content-Type lines',
    request('GET /hello HTTP/1.1', 'Content-Type: a/b', 'Content-Type: a/b'),
    400,
  ],
  ['the target *', request('GET * HTTP/1.1'), 404],
  ['a target with two slashes', request('GET //example.org/hello HTTP/1.1'), 404],
  ['dot segments', request('GET /x/../hello HTTP/1.1'), 404],
  ['escaped dot segments', request('GET /x/%2e%2e/hello HTTP/1.1'), 404],
  ['an escaped slash', request('GET /%2Fhello HTTP/1.1'), 404],
  ['an escaped slash between segments', request('GET /api%2Ftodos HTTP/1.1'), 404],
  ['an escaped NUL', request('GET /hello%00 HTTP/1.1'), 404],
  ['a bad escape', request('GET /%zz HTTP/1.1'), 400],
  ['an escape that is no UTF-8', request('GET /%ff HTTP/1.1'), 400],
  ['a trailing slash', request('GET /hello/ HTTP/1.1'), 404],
  [
    'a small body that nobody asked for',
    post('Content-Length: 7', 'abcdefg').replace('/posts', '/nowhere'),
    404,
  ],
];

describe('refused, and the connection goes on', { concurrency: true }, () => {
  for (const [name, text, status] of refused) {
    test(`${name}: ${status}, and the connection goes on`, async (t) => {
      const { port } = await startServer(t);
      const client = await connectRaw(t, port);
      assert.equal((await client.ask(text)).status, status);
      assert.equal((await client.ask(request('GET /hello HTTP/1.1'))).status, 200);
    });
  }
});

/** Unusual and right. */
const served: readonly (readonly [string, string, number])[] = [
  ['HTTP/1.0 without Host', 'GET /hello HTTP/1.0\r\n\r\n', 200],
  ['the absolute form', request('GET http://other.example/hello?a=b HTTP/1.1'), 200],
  ['an upper-case scheme', request('GET HTTP://other.example/hello HTTP/1.1'), 200],
  ['OPTIONS *', request('OPTIONS * HTTP/1.1'), 204],
  ['a query', request('GET /hello?a=%zz&?? HTTP/1.1'), 200],
  ['an escaped letter', request('GET /%68ello HTTP/1.1'), 200],
  [
    'a header named __proto__',
    request('GET /hello HTTP/1.1', '__proto__: a', 'constructor: b'),
    200,
  ],
  ['an IPv6 Host', 'GET /hello HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n', 200],
  ['a Host with an empty port', 'GET /hello HTTP/1.1\r\nHost: a:\r\n\r\n', 200],
  [
    'a chunked body',
    post('Transfer-Encoding: Chunked', `1b;x="y"\r\n${validPost}\r\n0\r\nT: x\r\n\r\n`),
    201,
  ],
  [
    'Upgrade: h2c',
    request(
      'GET /hello HTTP/1.1',
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABk',
    ),
    200,
  ],
  [
    'Upgrade: h2c with a body',
    post(`Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: ${validPost.length}`, validPost),
    201,
  ],
  [
    'Upgrade: websocket by POST',
    post(
      `Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: ${validPost.length}`,
      validPost,
    ),
    201,
  ],
];

describe('served', { concurrency: true }, () => {
  for (const [name, text, status] of served) {
    test(`${name} is served: ${status}`, async (t) => {
      const { port } = await startServer(t);
      assert.equal((await ask(t, port, text)).status, status);
    });
  }
});

test('absolute form: its host counts, not that of the header (RFC 9112 §3.2.2)', async (t) => {
  const { port } = await startServer(t);
  const body = '{"title":"a"}';
  const text = request(
    'POST http://real.example:81/api/todos HTTP/1.1',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  );
  const response = await ask(t, port, text + body);
  assert.match(response.headers.get('location') ?? '', /^http:\/\/real\.example:81\/api\/todos\//);
});

test('a request with nearly a hundred header lines is served', async (t) => {
  const { port } = await startServer(t);
  const many = Array.from({ length: 90 }, (_, at) => `X-${at}: y`);
  assert.equal((await ask(t, port, request('GET /hello HTTP/1.1', ...many))).status, 200);
});

test('a body declared too long is refused before 100 Continue and before it is read', async (t) => {
  const { port, config } = await startServer(t);
  const refuse = async (expect: string): Promise<void> => {
    const client = await connectRaw(t, port);
    const length = `Content-Length: ${config.bodyBytesMax + 1}`;
    client.send(request('POST /posts HTTP/1.1', 'Content-Type: application/json', length, expect));
    const response = await client.response();
    assert.equal(response.status, 413);
    await client.ended();
  };
  await Promise.all(['Expect: 100-continue', 'X: y'].map(refuse));
});

test('a body at the limit is asked for with 100 Continue, one byte more is refused', async (t) => {
  const { port, config } = await startServer(t, { env: { BODY_BYTES_MAX: '1024' } });
  const body = `${validPost}${' '.repeat(config.bodyBytesMax - validPost.length)}`;
  const client = await connectRaw(t, port);
  const type = 'Content-Type: application/json';
  const length = `Content-Length: ${body.length}`;
  client.send(request('POST /posts HTTP/1.1', type, length, 'Expect: 100-continue'));
  assert.equal((await client.response()).status, 100);
  assert.equal((await client.ask(body)).status, 201);
  const chunked = post('Transfer-Encoding: chunked', `401\r\n${body} \r\n0\r\n\r\n`);
  assert.equal((await ask(t, port, chunked)).status, 413);
});

test('a refusal that needs no body is given instead of 100 Continue', async (t) => {
  const { port } = await startServer(t);
  const response = await ask(
    t,
    port,
    request('POST /nowhere HTTP/1.1', 'Content-Length: 5', 'Expect: 100-continue'),
  );
  assert.equal(response.status, 404);
  assert.equal(response.headers.get('connection'), 'close');
});
