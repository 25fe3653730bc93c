import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, connectRaw } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';
import { keepOthersServed } from '../support/prober.ts';

keepOthersServed();

/** A request with one valid Host; `lines` are the request line and further headers. */
function request(first: string, ...lines: readonly string[]): string {
  return `${[first, 'Host: example.org', ...lines].join('\r\n')}\r\n\r\n`;
}

const getHello = (...more: readonly string[]): string => request('GET /hello HTTP/1.1', ...more);

/** A JSON POST whose body is framed by the given header. */
function post(framing: string, body: string): string {
  return `${request('POST /posts HTTP/1.1', 'Content-Type: application/json', framing)}${body}`;
}

const validPost = '{"title":"a","content":"b"}';

function chunked(coding: string, body: string): string {
  return post(`Transfer-Encoding: ${coding}`, body);
}

/** A case for each of the values. */
function named(what: string, values: readonly string[], toText: (value: string) => string) {
  return Object.fromEntries(
    values.map((each) => [`${what} ${JSON.stringify(each)}`, toText(each)]),
  );
}

/** What is sent, by what comes of it and its name. */
type Texts = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Each text with its name and what comes of it. */
function casesOf(all: Texts): (readonly [name: string, text: string, due: string])[] {
  return Object.entries(all).flatMap(([due, texts]) =>
    Object.entries(texts).map(([name, text]) => [name, text, due] as const),
  );
}

const lines = (count: number, line: string): string[] => Array.from({ length: count }, () => line);

const badHosts = [
  '',
  'a b',
  ...'a/b user@a a:80:80 a:port [::1 [fe80::1%] "a" a\u00e9 a?b'.split(' '),
];
const badCodings = ['gzip, chunked', 'gzip', 'identity', 'xchunked'];
const badLengths = ['+2', '-2', '2,2', '0x2', '99999999999999999999999'];
const badChunks = [
  'zz\r\n{}\r\n0\r\n\r\n',
  '-1\r\n{}\r\n',
  'ffffffffffffffffff\r\n{}',
  '2\r\n{}xx\r\n',
];

/** By status and code, what is sent. The connection must end after each. */
const closing: Texts = {
  '400 invalid_host': {
    'no Host': 'GET /hello HTTP/1.1\r\n\r\n',
    'two Hosts': getHello('Host: b'),
    'one Host twice': getHello('HOST: example.org'),
    'a bad Host in HTTP/1.0': 'GET /hello HTTP/1.0\r\nHost: a/b\r\n\r\n',
    ...named('the Host', badHosts, (host) => `GET /hello HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
  },
  '501 not_implemented': {
    ...named('Transfer-Encoding', badCodings, (coding) => chunked(coding, '0\r\n\r\n')),
    'a coding in a line of its own': chunked('gzip\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
    ...named('the method', ['FOO', 'patch', 'GETT'], (method) => request(`${method} / HTTP/1.1`)),
  },
  '505 http_version_not_supported': named('HTTP', ['0.9', '2.0', '3.0', '1.2'], (version) =>
    request(`GET /hello HTTP/${version}`),
  ),
  '400 malformed_request': {
    'a Transfer-Encoding of nothing': chunked('', '0\r\n\r\n'),
    'chunked in HTTP/1.0': 'POST /posts HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'both framings': post('Content-Length: 5\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
    'two lengths': post('Content-Length: 2\r\nContent-Length: 3', '{} '),
    ...named('Content-Length', badLengths, (length) => post(`Content-Length: ${length}`, '{}')),
    ...named('the chunks', badChunks, (chunks) => chunked('chunked', chunks)),
    'a space before the colon': getHello('X : a'),
    'a folded header': getHello('X: a\r\n b'),
    'a NUL in a header': getHello('X: a\0b'),
    'bare line feeds': 'GET /hello HTTP/1.1\nHost: a\n\n',
    'no request': 'rubbish\r\n\r\n',
    'a TLS hello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'a target that is not ASCII': request('GET /files/\u00fc HTTP/1.1'),
    'a fragment': request('GET /hello#x HTTP/1.1'),
    'authority form': request('GET example.org:80 HTTP/1.1'),
    'another scheme': request('GET ftp://a/hello HTTP/1.1'),
    'user information': request('GET http://u@a/hello HTTP/1.1'),
  },
  '405 method_not_allowed': { CONNECT: request('CONNECT example.org:80 HTTP/1.1') },
  '414 target_too_long': {
    'a target over the headers limit': request(`GET /${'a'.repeat(20_000)} HTTP/1.1`),
    'a target of many packets': request(`GET /${'a'.repeat(500_000)} HTTP/1.1`),
  },
  '431 headers_too_large': {
    'a header over the limit': getHello(`X: ${'a'.repeat(16_500)}`),
    'many headers over the limit': getHello(...lines(6_000, 'ab: cd')),
    '101 header lines': getHello(...lines(100, 'X: y')),
    'more than a hundred header lines, a Transfer-Encoding behind them': request(
      'POST /posts HTTP/1.1',
      ...lines(2_100, 'a:'),
      'Transfer-Encoding: gzip, chunked',
    ),
  },
};

const ofEveryRefusal = [
  'connection',
  'content-length',
  'content-type',
  'date',
  'x-content-type-options',
  'x-request-id',
  'cache-control',
];

describe('refused, and the connection ends', { concurrency: true }, () => {
  for (const [name, text, refusal] of casesOf(closing)) {
    test(`${name}: ${refusal}, then the end of the connection`, async (t) => {
      const client = await connectRaw(t, startServer(t));
      const { status, headers, body } = await client.ask(text);
      assert.equal(headers.get('connection'), 'close');
      assert.equal(headers.get('content-type'), 'application/problem+json');
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.ok(headers.get('x-request-id'));
      assert.ok(Date.parse(headers.get('date') ?? '') > 0, '(R6a)');
      const others = [...headers.keys()].filter((each) => !ofEveryRefusal.includes(each));
      assert.deepEqual(others, status === 405 ? ['allow'] : []);
      const problem = JSON.parse(body.toString()) as { status: number; code: string };
      assert.equal(`${problem.status} ${problem.code}`, refusal);
      assert.equal(problem.status, status);
      await client.ended();
    });
  }
});

/** Refused without harm to the connection, by status: the next request on it is answered. */
const refused: Texts = {
  400: {
    'two Authorization lines': getHello('Authorization: a', 'authorization: a'),
    'two Content-Type lines': getHello('Content-Type: a/b', 'Content-Type: a/c'),
    'a bad escape': request('GET /%zz HTTP/1.1'),
    'an escape that is no UTF-8': request('GET /%ff HTTP/1.1'),
  },
  404: {
    'the target *': request('GET * HTTP/1.1'),
    'a target with two slashes': request('GET //example.org/hello HTTP/1.1'),
    'dot segments': request('GET /x/../hello HTTP/1.1'),
    'escaped dot segments': request('GET /x/%2e%2e/hello HTTP/1.1'),
    'an escaped slash': request('GET /%2Fhello HTTP/1.1'),
    'an escaped slash between segments': request('GET /api%2Ftodos HTTP/1.1'),
    'an escaped NUL': request('GET /hello%00 HTTP/1.1'),
    'a trailing slash': request('GET /hello/ HTTP/1.1'),
    'a small body that nobody asked for': post('Content-Length: 1', 'a').replace('/posts', '/none'),
  },
  405: {
    TRACE: request('TRACE /hello HTTP/1.1'),
    ...named('the method', ['POST', 'PUT', 'PATCH', 'DELETE'], (method) =>
      request(`${method} /hello HTTP/1.1`),
    ),
  },
  501: named('the method', ['PROPFIND', 'LINK', 'M-SEARCH', 'PURGE'], (method) =>
    request(`${method} /hello HTTP/1.1`),
  ),
  414: { 'a long target': request(`GET /${'a'.repeat(8_000)} HTTP/1.1`) },
  417: { 'an unknown expectation': getHello('Expect: junk') },
};

describe('refused, and the connection goes on', { concurrency: true }, () => {
  for (const [name, text, status] of casesOf(refused)) {
    test(`${name}: ${status}, and the connection goes on`, async (t) => {
      const client = await connectRaw(t, startServer(t));
      assert.equal((await client.ask(text)).status, Number(status));
      assert.equal((await client.ask(getHello())).status, 200);
    });
  }
});

const lengthOfPost = `Content-Length: ${validPost.length}`;
/** Unusual and right, by status. */
const served: Texts = {
  200: {
    'HTTP/1.0 without Host': 'GET /hello HTTP/1.0\r\n\r\n',
    'the absolute form': request('GET http://other.example/hello?a=b HTTP/1.1'),
    'an upper-case scheme': request('GET HTTP://other.example/hello HTTP/1.1'),
    'a query': request('GET /hello?a=%zz&?? HTTP/1.1'),
    'an escaped letter': request('GET /%68ello HTTP/1.1'),
    'an expectation of nothing': getHello('Expect:'),
    'a header named __proto__': getHello('__proto__: a', 'constructor: b'),
    '100 header lines': getHello(...lines(99, 'X: y')),
    'nearly 16 KiB of headers': getHello(`X: ${'a'.repeat(16_200)}`),
    'a target of 8,000 bytes': request(`GET ${'/hello?'.padEnd(8_000, 'x')} HTTP/1.1`),
    'an IPv6 Host': 'GET /hello HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n',
    'a Host with a zone': 'GET /hello HTTP/1.1\r\nHost: [fe80::1%eth0]:8080\r\n\r\n',
    'a Host with an escaped zone': 'GET /hello HTTP/1.1\r\nHost: [fe80::1%252]\r\n\r\n',
    'a Host with an empty port': 'GET /hello HTTP/1.1\r\nHost: a:\r\n\r\n',
    'Upgrade: h2c': getHello(
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABk',
    ),
  },
  201: {
    'a chunked body': chunked('Chunked', `1b;x="y"\r\n${validPost}\r\n0\r\nT: x\r\n\r\n`),
    'Upgrade: h2c with a body': post(
      `Connection: Upgrade\r\nUpgrade: h2c\r\n${lengthOfPost}`,
      validPost,
    ),
    'one type twice': post(`Content-Type: application/json\r\n${lengthOfPost}`, validPost),
    'Upgrade: websocket by POST': post(
      `Connection: Upgrade\r\nUpgrade: websocket\r\n${lengthOfPost}`,
      validPost,
    ),
  },
  204: { 'OPTIONS *': request('OPTIONS * HTTP/1.1') },
};

describe('served', { concurrency: true }, () => {
  for (const [name, text, status] of casesOf(served)) {
    test(`${name} is served: ${status}`, async (t) => {
      const { port } = await startServer(t);
      assert.equal((await ask(t, port, text)).status, Number(status));
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

test('a body at the limit is asked for with 100 Continue, one byte more is refused', async (t) => {
  const { port, config } = await startServer(t, { env: { BODY_BYTES_MAX: '1024' } });
  const body = `${validPost}${' '.repeat(config.bodyBytesMax - validPost.length)}`;
  const client = await connectRaw(t, port);
  const type = 'Content-Type: application/json';
  const length = `Content-Length: ${body.length}`;
  client.send(request('POST /posts HTTP/1.1', type, length, 'Expect: 100-continue'));
  assert.equal((await client.response()).status, 100);
  assert.equal((await client.ask(body)).status, 201);
  const longer = chunked('chunked', `401\r\n${body} \r\n0\r\n\r\n`);
  assert.equal((await ask(t, port, longer)).status, 413);
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
