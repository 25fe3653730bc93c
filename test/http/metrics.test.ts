import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { createTokens } from '../../dist/auth/jwt.js';
import { createMetrics } from '../../dist/watch/prometheus.js';
import { testAtLength } from '../support/long.ts';
import { skipPostgres } from '../support/postgres.ts';
import { runProgram } from '../support/program.ts';
import { connectRaw, get } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.ts';
import { connectReady } from '../support/ws-clients.ts';
import { until } from '../support/until.ts';

async function start(context: TestContext, more: Readonly<Record<string, string>> = {}) {
  const { url, port, adminUrl } = await startServer(context, { env: { ADMIN_PORT: '0', ...more } });
  return watch(url, port, adminUrl);
}

/** A process of its own: what is open is shown there alone. */
async function startApart(context: TestContext) {
  const program = await runProgram(context, { env: { ADMIN_PORT: '0' } });
  const { line, port } = await program.listening();
  const { url, adminUrl } = JSON.parse(line) as Record<'url' | 'adminUrl', string>;
  return watch(url, port, adminUrl);
}

function watch(main: string, port: number, place: string) {
  const read = async (): Promise<string> => {
    const response = await fetch(`${place}/metrics`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    return response.text();
  };
  /** The value of the one line that begins so. */
  const valueOf = async (series: string): Promise<number> => {
    const [line, ...more] = (await read())
      .split('\n')
      .filter((one) => one.startsWith(`${series} `));
    assert.equal(more.length, 0, series);
    return Number(line?.slice(series.length) ?? 0);
  };
  return {
    main,
    port,
    read,
    valueOf,
    /** Resolves once `valueOf` gives this. */
    async reaches(series: string, value: number): Promise<void> {
      await until(`${series}${value}`, async () => (await valueOf(series)) === value);
    },
  };
}

test('a duration is in the bucket that it fills, and in the sum in seconds', () => {
  const { histogram, toText } = createMetrics();
  const add = histogram('d', 'Durations.', ['kind']);
  for (const milliseconds of [1_000, 1_001, 40_000]) add(milliseconds, 'a');
  const lines = toText().split('\n');
  const at = (le: string): string => `d_bucket{kind="a",le="${le}"} `;
  for (const line of [`${at('0.5')}0`, `${at('1')}1`, `${at('30')}2`, `${at('+Inf')}3`])
    assert.ok(lines.includes(line), line);
  assert.ok(lines.includes('d_sum{kind="a"} 42.001') && lines.includes('d_count{kind="a"} 3'));
});

function countOf(method: string, route: string, status: number): string {
  const labels = `method="${method}",route="${route}",status="${status}"`;
  return `inkwell_http_request_duration_seconds_count{${labels}}`;
}

function operationsOf(type: string, outcome: string): string {
  return `inkwell_graphql_operation_duration_seconds_count{type="${type}",outcome="${outcome}"}`;
}

async function send(url: string, value: unknown): Promise<void> {
  const headers = { 'Content-Type': 'application/json' };
  await (await fetch(url, { method: 'POST', body: JSON.stringify(value), headers })).arrayBuffer();
}

const ask = (main: string, query: string): Promise<void> => send(`${main}/graphql`, { query });

test('requests are counted by route and status, with no word of a client', async (t) => {
  const { main, read, valueOf } = await start(t);
  for (const path of ['/hello', '/hello?a=secret', '/posts/secret', '/secret'])
    await (await fetch(main + path)).arrayBuffer();
  await send(`${main}/auth/login`, { username: 'user', password: 'secret' });
  await fetch(`${main}/hello`, { method: 'PROPFIND' });
  assert.equal(await valueOf(countOf('GET', '/hello', 200)), 2);
  assert.equal(await valueOf(countOf('GET', '/posts/{id}', 404)), 1);
  assert.equal(await valueOf(countOf('GET', 'none', 404)), 1);
  assert.equal(await valueOf(countOf('other', 'none', 501)), 1);
  assert.equal(await valueOf('inkwell_security_events_total{event="login failed"}'), 1);
  assert.ok((await valueOf('inkwell_request_memory_bytes_max')) > 1e6);
  assert.doesNotMatch(await read(), /secret|NaN|undefined/);
});

test('refused tokens are counted by reason, and clients are told none', async (t) => {
  const secret = 'a secret of at least thirty-two bytes';
  const { main, valueOf } = await start(t, { JWT_SECRET: secret });
  const signedBy = (key: string, username = 'user', ttlSeconds = 60): string => {
    const secrets = [Buffer.from(key)] as const;
    const options = { secrets, ttlSeconds, sessionSecondsMax: 60, now: () => new Date() };
    const account = { username, email: 'user@example.com', roles: [], passwordHash: 'another' };
    return createTokens(options).sign(account);
  };
  const bodies = new Set<string>();
  const counts = new Map<string, number>();
  for (const [reason, token] of [
    ['expired', signedBy(secret, 'user', -1)],
    ['signature', signedBy('b'.repeat(32))],
    ['malformed', 'nonsense'],
    ['account', signedBy(secret, 'gone')],
    ['account', signedBy(secret, 'user')],
  ] as const) {
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(`${main}/profile`, { headers });
    assert.equal(response.status, 401, reason);
    bodies.add(await response.text());
    const count = (counts.get(reason) ?? 0) + 1;
    counts.set(reason, count);
    assert.equal(await valueOf(`inkwell_refused_tokens_total{reason="${reason}"}`), count, reason);
  }
  assert.equal(bodies.size, 1);
});

test('what is under way and open is shown, and is nothing in the end', async (t) => {
  const { port, read, reaches, valueOf } = await startApart(t);
  const open = ['http_requests_in_flight', 'connections', 'websockets', 'event_streams'];
  const gauges = [...open, 'subscriptions'].map((name) => `inkwell_${name}`);
  // An upload whose body does not come, an event stream, and a socket with a subscription.
  const upload = await connectRaw(t, port);
  const type = 'Content-Type: application/json';
  upload.send(['POST /posts HTTP/1.1', 'Host: a', type, 'Content-Length: 100']);
  const query = 'subscription { commentAdded { id } }';
  const stream = await connectRaw(t, port);
  stream.send(get(`/graphql?query=${encodeURIComponent(query)}`, 'Accept: text/event-stream'));
  const socket = await connectReady(port);
  socket.send({ type: 'subscribe', id: '1', payload: { query } });
  for (const [at, value] of [2, 3, 1, 1, 2].entries()) await reaches(gauges[at] ?? '', value);
  const age = Date.now() / 1_000 - (await valueOf('process_start_time_seconds'));
  assert.ok(age > 0 && age < 3_600, `started ${age} s ago`);
  assert.equal(await valueOf(countOf('GET', '/graphql', 101)), 1);
  assert.equal(await valueOf(operationsOf('subscription', 'ok')), 2);
  upload.socket.resetAndDestroy();
  stream.socket.resetAndDestroy();
  socket.socket.close(4123);
  for (const gauge of gauges) await reaches(gauge, 0);
  assert.equal(await valueOf('inkwell_websocket_closes_total{code="other"}'), 1);
  assert.equal(await valueOf(countOf('POST', '/posts', 499)), 1);
  assert.ok((await valueOf('process_resident_memory_bytes')) > 1e6);
  assert.ok((await valueOf('process_cpu_seconds_total')) > 0);
  assert.ok((await valueOf('process_open_fds')) > 5);
  assert.ok((await valueOf('inkwell_connections_max')) > 100);
  assert.ok((await valueOf('inkwell_heap_used_bytes')) > 1e6);
  assert.match(await read(), /^inkwell_build_info\{version="[0-9.]+"\} 1$/m);
  const names = Array.from((await read()).matchAll(/^# TYPE (\w+)/gm), ([, name = '']) => name);
  const text = readFileSync(new URL('../../docs/production.md', import.meta.url), 'utf8');
  const cells = Array.from(
    text.matchAll(/^\| (`(?:inkwell|process)_[^|]+)\|/gm),
    ([, cell]) => cell,
  );
  const listed = Array.from(cells.join(' ').matchAll(/`(\w+)`/g), ([, name = '']) => name);
  assert.deepEqual(names.toSorted(), listed.toSorted(), 'the documents list them all');
});

test('operations are counted by type and outcome, errors by code, over HTTP and sockets', async (t) => {
  const { main, port, reaches, valueOf } = await start(t);
  const countOfCode = (code: string) => `inkwell_graphql_errors_total{code="${code}"}`;
  assert.equal(await valueOf(countOfCode('UNAVAILABLE')), 0);
  await ask(main, '{ allPosts { id } }');
  await ask(main, '{ allPosts { id } }');
  await ask(main, '{ secret }');
  for (const id of ['a', ''])
    await ask(main, `mutation { addComment(commentInput: { postId: "${id}", content: "c" }) }`);
  await send(`${main}/graphql`, [{ query: '{ secret' }, {}]);
  assert.equal(await valueOf(operationsOf('query', 'ok')), 1);
  assert.equal(await valueOf(operationsOf('mutation', 'error')), 2);
  assert.equal(await valueOf('inkwell_graphql_cached_responses_total{type="query"}'), 1);
  assert.equal(await valueOf(countOfCode('NOT_FOUND')), 2);
  assert.equal(await valueOf(countOfCode('GRAPHQL_VALIDATION_FAILED')), 1);
  assert.equal(await valueOf(countOfCode('GRAPHQL_PARSE_FAILED')), 1);
  assert.equal(await valueOf(countOfCode('BAD_USER_INPUT')), 1);
  const socket = await connectReady(port);
  socket.send({ type: 'subscribe', id: '1', payload: { query: '{ __typename }' } });
  await reaches(operationsOf('query', 'ok'), 2);
  const refused = await valueOf(operationsOf('unknown', 'refused'));
  socket.send({ type: 'subscribe', id: '2', payload: { query: '{ secret }' } });
  await reaches(countOfCode('GRAPHQL_VALIDATION_FAILED'), 2);
  await reaches(operationsOf('unknown', 'refused'), refused + 1);
});

testAtLength('a store that is away is 0, and 1 once it is back', async (t) => {
  if (skipPostgres) return t.skip(skipPostgres);
  const { reaches } = await start(t, { STORE_URL: await database.clearedDatabase() });
  await reaches('inkwell_store_up', 1);
  await database.stop();
  await reaches('inkwell_store_up', 0);
  await database.start();
  await reaches('inkwell_store_up', 1);
});

test('statements of a durable store are timed by kind', { skip: skipSqlite }, async (t) => {
  const file = await newSqliteFile(t);
  const { main, valueOf } = await start(t, { STORE_URL: toSqliteUrl(file) });
  const calls = (kind: string): Promise<number> =>
    valueOf(`inkwell_store_statement_duration_seconds_count{kind="${kind}"}`);
  const [read, written] = [await calls('read'), await calls('write')];
  await (await fetch(`${main}/posts`)).arrayBuffer();
  assert.equal(await calls('read'), read + 1);
  await send(`${main}/posts`, { title: 'a', content: 'b' });
  assert.equal(await calls('write'), written + 1);
});

test('counters begin with 0, and stored files are shown beside their limits', async (t) => {
  const { main, read, valueOf } = await start(t);
  // Of the store in memory no statement is timed.
  await (await fetch(`${main}/posts`)).arrayBuffer();
  assert.doesNotMatch(await read(), /store_statement_duration_seconds_count/);
  for (const series of [
    'security_events_total{event="login failed"}',
    'refused_tokens_total{reason="expired"}',
    'graphql_cached_responses_total{type="query"}',
    'graphql_errors_total{code="STORAGE_FULL"}',
    'dropped_subscribers_total{reason="slow_consumer"}',
    'stored_files',
    'stored_bytes',
  ]) {
    assert.ok((await read()).includes(`\ninkwell_${series} 0\n`), series);
  }
  const closes = (await read()).matchAll(/^inkwell_websocket_closes_total\{code="(\w+)"\} 0$/gm);
  assert.equal(
    Array.from(closes, ([, code]) => code).join(' '),
    '1000 1001 1002 1003 1005 1006 1007 1008 1009 1011 1013 4400 4401 4403 4408 4409 4429 other',
  );
  const body = new FormData();
  body.append('part', new Blob(['abc']), 'a.txt');
  const { status } = await fetch(`${main}/api/multiparts/simple`, { method: 'POST', body });
  assert.equal(status, 200);
  assert.equal(await valueOf('inkwell_stored_files'), 1);
  assert.equal(await valueOf('inkwell_stored_bytes'), 3);
  assert.ok((await valueOf('inkwell_stored_bytes_max')) > 1e9);
});

test('/metrics is not on the main port', async (t) => {
  for (const ADMIN_PORT of ['', '0']) {
    const server = await startServer(t, { env: { ADMIN_PORT } });
    assert.equal((await server.fetch('/metrics')).status, 404, ADMIN_PORT);
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
