import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { runProgram } from '../support/program.js';
import { connectRaw } from '../support/raw-client.js';
import { startServer } from '../support/server.js';
import { newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.js';
import { askUpgrade, connectReady, upgradeLines } from '../support/ws-clients.js';
import { until } from '../support/until.js';

interface Watched {
  readonly main: string;
  readonly port: number;
  read(): Promise<string>;
  /** The value of the one line that begins so. */
  valueOf(series: string): Promise<number>;
  /** Resolves once `valueOf` gives this. */
  reaches(series: string, value: number): Promise<void>;
}

/** In this process. */
async function start(
  context: TestContext,
  env: Readonly<Record<string, string>> = {},
): Promise<Watched> {
  const { url, port, adminUrl } = await startServer(context, { env: { ADMIN_PORT: '0', ...env } });
  return watch(url, port, adminUrl);
}

/** A process of its own, with a port of its own for `/metrics`. */
async function startApart(context: TestContext): Promise<Watched> {
  const program = await runProgram(context, { env: { ADMIN_PORT: '0' } });
  const { line, port } = await program.listening();
  const { url, adminUrl } = JSON.parse(line) as { readonly url: string; readonly adminUrl: string };
  return watch(url, port, adminUrl);
}

function watch(main: string, port: number, place: string): Watched {
  const read = async (): Promise<string> => {
    const response = await fetch(`${place}/metrics`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    return response.text();
  };
  const valueOf = async (series: string): Promise<number> => {
    const lines = (await read()).split('\n').filter((one) => one.startsWith(`${series} `));
    assert.ok(lines.length <= 1, series);
    return Number(lines[0]?.slice(series.length) ?? 0);
  };
  return {
    main,
    port,
    read,
    valueOf,
    async reaches(series, value) {
      await until(async () => (await valueOf(series)) === value);
    },
  };
}

function countOf(method: string, route: string, status: number): string {
  const labels = `method="${method}",route="${route}",status="${status}"`;
  return `inkwell_http_request_duration_seconds_count{${labels}}`;
}

function operationsOf(type: string, outcome: string): string {
  return `inkwell_graphql_operation_duration_seconds_count{type="${type}",outcome="${outcome}"}`;
}

async function ask(main: string, query: string, path = '/graphql'): Promise<void> {
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ query });
  await (await fetch(main + path, { method: 'POST', body, headers })).arrayBuffer();
}

test('requests are counted by route and status, with no word of a client', async (t) => {
  const { main, read, valueOf } = await start(t);
  for (const path of ['/hello', '/hello?a=secret', '/posts/secret', '/secret']) {
    await (await fetch(main + path)).arrayBuffer();
  }
  const body = JSON.stringify({ username: 'user', password: 'secret' });
  const headers = { 'Content-Type': 'application/json' };
  await fetch(`${main}/auth/login`, { method: 'POST', body, headers });
  await fetch(`${main}/hello`, { method: 'PROPFIND' });
  assert.equal(await valueOf(countOf('GET', '/hello', 200)), 2);
  assert.equal(await valueOf(countOf('GET', '/posts/{id}', 404)), 1);
  assert.equal(await valueOf(countOf('GET', 'none', 404)), 1);
  assert.equal(await valueOf(countOf('other', 'none', 405)), 1);
  assert.equal(await valueOf('inkwell_security_events_total{event="login failed"}'), 1);
  assert.ok((await valueOf('inkwell_waiting_bytes_max')) > 1e6);
  assert.doesNotMatch(await read(), /secret|NaN|undefined/);
});

test('refused bytes and handshakes are counted too', async (t) => {
  const { port, valueOf } = await start(t);
  for (const bytes of ['nonsense\r\n\r\n', `GET / HTTP/1.1\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`]) {
    const client = await connectRaw(t, port);
    await client.ask(bytes);
  }
  await askUpgrade(port, upgradeLines({ 'Sec-WebSocket-Version': '8' }));
  await askUpgrade(port, upgradeLines({ Origin: 'https://evil.example' }));
  assert.equal(await valueOf(countOf('other', 'none', 400)), 1);
  assert.equal(await valueOf(countOf('other', 'none', 431)), 1);
  assert.equal(await valueOf(countOf('GET', '/graphql', 400)), 1);
  assert.equal(await valueOf(countOf('GET', '/graphql', 403)), 1);
  assert.equal(await valueOf('inkwell_security_events_total{event="origin refused"}'), 1);
});

test('the buckets of a histogram grow up to its count', async (t) => {
  const { main, read } = await start(t);
  for (let count = 0; count < 5; count += 1) await (await fetch(`${main}/hello`)).arrayBuffer();
  const found = (await read()).matchAll(/_bucket{.*route="\/hello".*} (\d+)$/gm);
  const counts = Array.from(found, ([, count]) => Number(count));
  assert.deepEqual(
    counts,
    counts.toSorted((a, b) => a - b),
  );
  assert.equal(counts.at(-1), 5);
});

test('what is under way and open is shown, and is nothing in the end', async (t) => {
  const { port, read, reaches, valueOf } = await startApart(t);
  const open = ['http_requests_in_flight', 'connections', 'websockets', 'event_streams'];
  const gauges = [...open, 'subscriptions'].map((name) => `inkwell_${name}`);
  // An upload whose body does not come, an event stream, and a socket with a subscription.
  const upload = await connectRaw(t, port);
  upload.send([
    'POST /posts HTTP/1.1',
    'Host: a',
    'Content-Type: application/json',
    'Content-Length: 100',
    '',
    '',
  ]);
  const query = 'subscription { commentAdded { id } }';
  const stream = await connectRaw(t, port);
  stream.send([
    `GET /graphql?query=${encodeURIComponent(query)} HTTP/1.1`,
    'Host: a',
    'Accept: text/event-stream',
    '',
    '',
  ]);
  const socket = await connectReady(port);
  socket.send({ type: 'subscribe', id: '1', payload: { query } });
  for (const [at, value] of [2, 3, 1, 1, 2].entries()) await reaches(gauges[at] ?? '', value);
  assert.equal(await valueOf(countOf('GET', '/graphql', 101)), 1);
  assert.equal(await valueOf(operationsOf('subscription', 'ok')), 2);
  upload.socket.resetAndDestroy();
  stream.socket.resetAndDestroy();
  socket.socket.close(4123);
  for (const gauge of gauges) await reaches(gauge, 0);
  assert.equal(await valueOf('inkwell_websocket_closes_total{code="other"}'), 1);
  assert.equal(await valueOf(countOf('POST', '/posts', 499)), 1);
  assert.ok((await valueOf('inkwell_resident_memory_bytes')) > 1e6);
  assert.ok((await valueOf('inkwell_heap_used_bytes')) > 1e6);
  assert.ok((await valueOf('process_start_time_seconds')) > 1.6e9);
  assert.match(await read(), /^inkwell_build_info\{version="[0-9.]+"\} 1$/m);
  const names = Array.from((await read()).matchAll(/^# TYPE (\w+)/gm), ([, name = '']) => name);
  const text = readFileSync(new URL('../../docs/production.md', import.meta.url), 'utf8');
  const listed = Array.from(
    text.matchAll(/^\| `((?:inkwell|process)_\w+)`/gm),
    ([, name = '']) => name,
  );
  assert.deepEqual(names.toSorted(), listed.toSorted(), 'the documents list them all');
});

test('operations are counted by type and outcome, over HTTP and sockets', async (t) => {
  const { main, port, reaches, valueOf } = await start(t);
  await ask(main, '{ allPosts { id } }');
  await ask(main, '{ allPosts { id } }');
  await ask(main, '{ secret }');
  for (const id of ['a', '']) {
    await ask(main, `mutation { addComment(commentInput: { postId: "${id}", content: "" }) }`);
  }
  assert.equal(await valueOf(operationsOf('query', 'ok')), 1);
  assert.equal(await valueOf(operationsOf('mutation', 'error')), 2);
  assert.equal(await valueOf('inkwell_graphql_cached_responses_total{type="query"}'), 1);
  const socket = await connectReady(port);
  socket.send({ type: 'subscribe', id: '1', payload: { query: '{ __typename }' } });
  await reaches(operationsOf('query', 'ok'), 2);
  socket.send({ type: 'subscribe', id: '2', payload: { query: '{ secret' } });
  await reaches(operationsOf('unknown', 'refused'), 2);
});

test('statements of a durable store are timed by kind', { skip: skipSqlite }, async (t) => {
  const file = await newSqliteFile(t);
  const { main, valueOf } = await start(t, { STORE_URL: toSqliteUrl(file) });
  const calls = (kind: string): Promise<number> =>
    valueOf(`inkwell_store_statement_duration_seconds_count{kind="${kind}"}`);
  const [read, written] = [await calls('read'), await calls('write')];
  await (await fetch(`${main}/posts`)).arrayBuffer();
  assert.equal(await calls('read'), read + 1);
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ title: 'a', content: 'b' });
  await fetch(`${main}/posts`, { method: 'POST', body, headers });
  assert.equal(await calls('write'), written + 1);
});

test('those of the store in memory are not', async (t) => {
  const { main, read } = await start(t);
  await (await fetch(`${main}/posts`)).arrayBuffer();
  assert.doesNotMatch(await read(), /store_statement_duration_seconds_count/);
});

test('counters begin with 0, and stored files are shown beside their limits', async (t) => {
  const { main, read, valueOf } = await start(t);
  for (const series of [
    'security_events_total{event="login failed"}',
    'graphql_cached_responses_total{type="query"}',
    'dropped_subscribers_total{reason="behind"}',
    'stored_files',
    'stored_bytes',
  ]) {
    assert.ok((await read()).includes(`\ninkwell_${series} 0\n`), series);
  }
  const closes = (await read()).matchAll(/^inkwell_websocket_closes_total\{code="(\w+)"\} 0$/gm);
  assert.equal(
    Array.from(closes, ([, code]) => code).join(' '),
    '1000 1001 1002 1003 1005 1006 1007 1008 1009 1011 1013 4400 4401 4408 4409 4429 other',
  );
  const body = new FormData();
  body.append('part', new Blob(['abc']), 'a.txt');
  assert.equal(
    (await fetch(`${main}/api/multiparts/simple`, { method: 'POST', body })).status,
    200,
  );
  assert.deepEqual(
    [await valueOf('inkwell_stored_files'), await valueOf('inkwell_stored_bytes')],
    [1, 3],
  );
  assert.ok((await valueOf('inkwell_stored_bytes_max')) > 1e9);
});

test('/metrics is not on the main port', async (t) => {
  for (const ADMIN_PORT of ['', '0']) {
    const server = await startServer(t, { env: { ADMIN_PORT } });
    assert.equal((await server.fetch('/metrics')).status, 404);
  }
});

const skip =
  spawnSync('promtool', ['--version']).status !== 0 && 'there is no promtool on this machine';

test('promtool has nothing against them', { skip }, async (t) => {
  const { main, read } = await start(t);
  await ask(main, '{ allPosts { id } }');
  await ask(main, '{ allPosts { id } }');
  const { status, stderr, stdout } = spawnSync('promtool', ['check', 'metrics'], {
    input: await read(),
    encoding: 'utf8',
  });
  assert.deepEqual([status, stderr, stdout], [0, '', '']);
});
