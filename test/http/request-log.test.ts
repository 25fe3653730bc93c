import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { connectRaw, get } from '../support/raw-client.ts';
import { askUpgrade, connectByHand, upgradeLines } from '../support/ws-clients.ts';
import { readConfig } from '../../dist/config.js';
import type { Log } from '../../dist/log.js';
import { AppError } from '../../dist/errors.js';
import { gate, slowRoute, startHttp } from '../support/http-kit.ts';
import { emptyResponse, type Handler } from '../../dist/http/message.js';
import { createMonitor, type MonitorDeps } from '../../dist/watch/monitor.js';
import { type LogRecord, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** The lines of an event, those about requests by default, once there are so many. */
async function requestsOf(
  server: Pick<TestServer, 'logged'>,
  count: number,
  name = 'request',
): Promise<LogRecord[]> {
  const lines = (): LogRecord[] => server.logged.filter(({ event }) => event === name);
  await until('as many lines of the log', () => lines().length >= count);
  return lines();
}

const all = { env: { LOG_REQUESTS: 'all' } };

test('LOG_REQUESTS=all: a line for each request, with its route and never its path', async (t) => {
  const server = await startServer(t, all);
  const headers = { traceparent, 'X-Request-Id': 'a '.repeat(200) };
  const hello = await server.fetch('/hello?token=secret', { headers });
  const length = (await hello.arrayBuffer()).byteLength;
  await server.fetch('/hello', { method: 'HEAD' });
  await server.send('POST', '/posts', { title: 'a', content: 'b' });
  const missing = await server.fetch('/posts/secret');
  await server.fetch('/secret');
  const lines = await requestsOf(server, 5);
  const [first] = lines;
  assert.ok(first !== undefined);
  const { ms, ...rest } = first;
  assert.ok(typeof ms === 'number' && ms >= 0);
  assert.deepEqual(rest, {
    // A second is long for the service, and may be short for a loaded machine.
    level: ms > 1_000 ? 'warn' : 'info',
    event: 'request',
    method: 'GET',
    route: '/hello',
    status: 200,
    bytes: length,
    code: undefined,
    reason: undefined,
    requestId: hello.headers.get('x-request-id'),
    client: '127.0.0.1',
    account: undefined,
    trace_id: '0af7651916cd43dd8448eb211c80319c',
    span_id: 'b7ad6b7169203331',
    givenRequestId: 'a '.repeat(64),
  });
  const others = lines
    .slice(1)
    .map(({ method, route, status }) => [method, route, status].join(' '));
  const due = ['HEAD /hello 200', 'POST /posts 201', 'GET /posts/{id} 404', 'GET  404'];
  assert.deepEqual(others, due);
  assert.equal(lines[1]?.['bytes'], 0);
  assert.equal(lines[3]?.['bytes'], (await missing.arrayBuffer()).byteLength);
  assert.doesNotMatch(JSON.stringify(server.logged), /secret/);
});

test('a line has the client that a trusted proxy names, and what became of its response', async (t) => {
  const server = await startServer(t, { env: { ...all.env, TRUSTED_PROXIES: '127.0.0.1' } });
  const headers = { 'X-Forwarded-For': '192.0.2.7' };
  const download = await server.fetch('/api/multiparts', { headers });
  const length = (await download.arrayBuffer()).byteLength;
  const tag = (await server.fetch('/api/todos')).headers.get('etag') ?? '';
  await server.fetch('/api/todos', { headers: { 'If-None-Match': tag } });
  const [streamed, ...others] = await requestsOf(server, 3);
  assert.deepEqual([streamed?.['route'], streamed?.['client']], ['/api/multiparts', '192.0.2.7']);
  // The head and the frames of the chunks come on top; it is a line when its stream has ended.
  assert.ok(Number(streamed?.['bytes']) > length);
  const found = others.map(({ status, bytes }) => [status, bytes === 0].join(' '));
  assert.deepEqual(found, ['200 false', '304 true']);
});

/** The kit with a log of requests, around a route that fails and one that waits. */
async function startLogged(
  context: TestContext,
  logRequests: 'none' | 'errors' | 'all',
  routes: Parameters<typeof startHttp>[1]['routes'],
) {
  const lines: LogRecord[] = [];
  const log: Log = (level, event, facts) => void lines.push({ ...facts, level, event });
  // Without ADMIN_PORT nothing is read for metrics.
  const deps = { log, monotonicNow: () => 0 } as MonitorDeps;
  const { observer } = createMonitor(readConfig({ LOG_REQUESTS: logRequests }), deps);
  return { ...(await startHttp(context, { routes, observer })), logged: lines };
}

test('the bytes of a stream are its own, not those of its connection', async (t) => {
  const stream: Handler = () => ({ status: 200, headers: [], body: Readable.from(['a', 'b']) });
  const server = await startLogged(t, 'all', { 'GET /': stream });
  const client = await connectRaw(t, server.port);
  for (const _ of [1, 2]) await client.ask(get('/'));
  const [first, second] = await requestsOf(server, 2);
  assert.equal(second?.['bytes'], first?.['bytes']);
});

const fault = {
  'GET /fault': () => {
    throw new Error('x');
  },
};

test('what went well is a line with `all` alone, a status from 500 on with `errors` too', async (t) => {
  for (const [mode, due] of [
    ['errors', ['warn 500']],
    ['all', ['info 200', 'warn 500']],
    ['none', []],
  ] as const) {
    const server = await startLogged(t, mode, fault);
    for (const path of ['hello', 'fault'])
      await (await fetch(`http://127.0.0.1:${server.port}/${path}`)).text();
    const lines = await requestsOf(server, due.length);
    const found = lines.map(({ level, status }) => [level, status].join(' '));
    assert.deepEqual(found, due, mode);
  }
});

test('a response that took over a second is a warning', async (t) => {
  const slow: Handler = async () => {
    await new Promise((resolve) => setTimeout(resolve, 1_001));
    return { status: 200, headers: [], body: 'slow' };
  };
  const server = await startLogged(t, 'errors', { 'GET /slow': slow });
  await fetch(`http://127.0.0.1:${server.port}/slow`);
  const [line] = await requestsOf(server, 1);
  assert.deepEqual([line?.level, line?.['status']], ['warn', 200]);
});

async function leave(t: TestContext, method: string, respond: Handler) {
  const [opened, asked] = [gate(), gate()];
  const wait = slowRoute(opened, asked);
  const handler: Handler = async (request) => (await wait(request), respond(request));
  const server = await startLogged(t, 'all', { [`${method} /slow`]: handler });
  const client = await connectRaw(t, server.port);
  client.send([`${method} /slow HTTP/1.1`, 'Host: a', 'Content-Length: 0']);
  await asked.opened;
  client.socket.resetAndDestroy(); // one that only ends its side is still answered
  await until('the end of all requests', () => server.active() <= 0);
  opened.open();
  const [line] = await requestsOf(server, 1);
  return { line, logged: server.logged };
}

test('a client that leaves before its response is logged as 499', async (t) => {
  const { line, logged } = await leave(t, 'GET', () => {
    throw new AppError('too_many_requests', 'Too many.');
  });
  assert.deepEqual([line?.['status'], line?.['bytes']], [499, 0]);
  assert.deepEqual([line?.['client'], line?.['code']], ['127.0.0.1', 'too_many_requests']);
  const refused = { level: 'warn', event: 'login refused', client: '127.0.0.1', count: 1 };
  assert.deepEqual(logged[0], refused);
});

test('a change whose client has left is a line', async (t) => {
  const { line, logged } = await leave(t, 'POST', (request) => {
    request.account = 'ann';
    return emptyResponse(201, ['Location', '/slow/7']);
  });
  const change = logged.find(({ event }) => event === 'change');
  assert.deepEqual([line?.['status'], change?.['account'], change?.['id']], [499, 'ann', '7']);
});

test('a WebSocket is a line when it is opened, and one when it is closed', async (t) => {
  const server = await startServer(t, all);
  const client = await connectByHand(server.port);
  const [opened] = await requestsOf(server, 1);
  const found = [opened?.['method'], opened?.['route'], opened?.['status'], opened?.['client']];
  assert.deepEqual(found, ['GET', '/graphql', 101, '127.0.0.1']);
  client.socket.close(4123);
  const [closed] = await requestsOf(server, 1, 'websocket closed');
  assert.ok(closed);
  const ended = [closed['code'], closed['requestId'], closed['client']];
  assert.deepEqual(ended, [4123, opened?.['requestId'], '127.0.0.1']);
  assert.ok(Number(closed['ms']) >= 0);
});

test('a refused handshake is a line with its status, and the id that its response has', async (t) => {
  const server = await startServer(t, all);
  for (const name of ['Sec-WebSocket-Version', 'Sec-WebSocket-Key'])
    await askUpgrade(server.port, upgradeLines({ [name]: '8' }));
  const { text } = await askUpgrade(server.port, upgradeLines({}, '/secret'));
  const lines = await requestsOf(server, 3);
  const found = lines.map(({ route, status }) => [route, status].join(' '));
  assert.deepEqual(found, ['/graphql 400', '/graphql 400', ' 404']);
  const [head = '', body = ''] = text.split('\r\n\r\n');
  assert.match(head, new RegExp(`^X-Request-Id: ${String(lines[2]?.['requestId'])}$`, 'm'));
  assert.equal(lines[2]?.['bytes'], body.length);
});

test('bytes that are no request are a line', async (t) => {
  const server = await startServer(t, all);
  // A server of its own: on a loaded machine its time may be over before other bytes are read.
  const hasty = await startServer(t, { env: { ...all.env, IDLE_TIMEOUT_SECONDS: '1' } });
  for (const [to, bytes, status] of [
    [server, 'nonsense\r\n\r\n', 400],
    [server, `GET / HTTP/1.1\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    [hasty, 'GET / HTTP/1.1\r\nHost: a\r\n', 408],
    [server, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 405],
  ] as const) {
    const client = await connectRaw(t, to.port);
    assert.equal((await client.ask(bytes)).status, status, bytes);
  }
  const lines = [...(await requestsOf(server, 3)), ...(await requestsOf(hasty, 1))];
  for (const [at, status] of [400, 431, 405, 408].entries()) {
    const { method, route, client, ...line } = lines[at] ?? assert.fail();
    assert.deepEqual([method, route, client], [undefined, undefined, '127.0.0.1'], `round ${at}`);
    assert.equal(line['status'], status, `round ${at}`);
  }
});

// What is logged for the sake of security, whatever LOG_REQUESTS says.

const none = { LOG_REQUESTS: 'none' };
const from = { level: 'warn', client: '127.0.0.1' };

function warningsOf(server: TestServer): readonly LogRecord[] {
  return server.logged.filter(({ level }) => level === 'warn');
}

test('a form or a socket of a foreign page is told of with its origin', async (t) => {
  const server = await startServer(t, { env: none });
  const given = `https://${'e'.repeat(300)}.example`;
  const origin = given.slice(0, 128);
  const form = new FormData();
  form.append('part', new Blob(['x']), 'a');
  const path = '/api/multiparts/simple';
  const init = { method: 'POST', body: form, headers: { Origin: given } };
  assert.equal((await server.fetch(path, init)).status, 403);
  const socket = await connectRaw(t, server.port);
  const upgrade = ['GET /graphql HTTP/1.1', 'Host: a', `Origin: ${given}`, 'Upgrade: websocket'];
  socket.send([...upgrade, 'Connection: Upgrade', '', ''].join('\r\n'));
  assert.equal((await socket.response()).status, 403);
  // What the origin was compared with shows whether a proxy changes it.
  const refused = { ...from, event: 'origin refused', origin, count: 1 };
  assert.deepEqual(warningsOf(server), [
    { ...refused, host: `127.0.0.1:${server.port}` },
    { ...refused, host: 'a' },
  ]);
});

test('a full store is told of by the reason, over GraphQL too', async (t) => {
  const env = { LOG_REQUESTS: 'errors', MEMORY_STORE_BYTES_MAX: '1048576' };
  const server = await startServer(t, { env });
  const post = { title: 'a', content: 'x'.repeat(600_000) };
  assert.equal((await server.send('POST', '/posts', post)).status, 507);
  const [line] = warningsOf(server);
  const reason = line?.['reason'];
  assert.deepEqual([line?.event, line?.['code']], ['request', 'storage_full']);
  assert.equal(typeof reason, 'string');
  const query = 'mutation($post: CreatePostInput!) { createPost(createPostInput: $post) }';
  assert.equal((await server.send('POST', '/graphql', { query, variables: { post } })).status, 200);
  const full = server.logged.find(({ event }) => event === 'storage full');
  assert.deepEqual([full?.level, full?.['reason']], ['warn', reason]);
});
