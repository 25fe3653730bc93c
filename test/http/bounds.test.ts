/** Bounds of one connection that are constants, each crossed by a literal. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { readConfig } from '../../dist/config.js';
import { HttpRequest, textResponse } from '../../dist/http/message.js';
import { createArrivals } from '../../dist/http/server/arrivals.js';
import { createListener } from '../../dist/http/server/exchange.js';
import { HttpServer } from '../../dist/http/server/server.js';
import { ConnectionMemory, MemoryPool } from '../../dist/memory-pool.js';
import type { RunInTurn } from '../../dist/scheduler.js';
import { startHandler, startHttp } from '../support/http-kit.ts';
import { connectRaw, get } from '../support/raw-client.ts';

const post = (path: string, ...headers: readonly string[]): string =>
  get(path, ...headers).replace('GET', 'POST');

/** The delays of timers that begin from now on. */
function watchTimers(t: TestContext): () => readonly number[] {
  const { mock } = t.mock.method(globalThis, 'setTimeout');
  return () => mock.calls.map(({ arguments: [, milliseconds] }) => Number(milliseconds));
}

test('the connection stays behind 65,536 bytes that nobody reads, and ends behind one more', async (t) => {
  const { port } = await startHttp(t, { routes: {} });
  for (const [length, connection] of [
    [65_536, 'keep-alive'],
    [65_537, 'close'],
  ] as const) {
    const client = await connectRaw(t, port);
    const { status, headers } = await client.ask(post('/nowhere', `Content-Length: ${length}`));
    assert.deepEqual([status, headers.get('connection')], [404, connection]);
    client.destroy();
  }
});

/** `read`: whether the handler reads the body. */
async function startChunks(t: TestContext, read: boolean) {
  let isEnded = (): boolean => false;
  const { client } = await startHandler(t, async (request) => {
    const { socket } = request.incoming;
    isEnded = () => socket.destroyed;
    return textResponse(200, read ? String((await request.readBody(1e6)).length) : 'no');
  });
  client.socket.setNoDelay(true);
  /** In a packet: what this process sends in one call it reads in one. */
  const send = async (packet: string): Promise<void> => {
    client.send(packet);
    for (let iteration = 0; iteration < 20; iteration += 1) await turn();
  };
  await send(post('/', 'Transfer-Encoding: chunked'));
  return { client, send, isEnded: () => isEnded() };
}

const chunks = (count: number, bytes: number): string =>
  `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`.repeat(count);

for (const read of [true, false]) {
  test(`501 chunks of 63 bytes in a packet end a connection that is ${read ? '' : 'not '}read`, async (t) => {
    for (const [isTooMany, ...packets] of [
      [false, chunks(500, 63)],
      [true, chunks(501, 63)],
      [false, chunks(501, 64)],
      [false, chunks(300, 63), chunks(300, 63)],
    ] as const) {
      const { client, send, isEnded } = await startChunks(t, read);
      for (const packet of packets) await send(packet);
      assert.equal(isEnded(), isTooMany, String(packets.map(({ length }) => length)));
      if (!isTooMany) assert.equal((await client.ask('0\r\n\r\n')).status, 200);
    }
  });
}

test('of the rest of a refused body 8 MiB are read', async (t) => {
  let read = (): number => 0;
  const { client } = await startHandler(t, (request) => {
    const { socket } = request.incoming;
    read = () => socket.bytesRead;
    return textResponse(200, 'no');
  });
  client.send(post('/', 'Content-Length: 60000000'));
  client.send(Buffer.alloc(60_000_000));
  assert.equal((await client.response()).headers.get('connection'), 'close');
  for (let [quiet, before] = [0, 0]; quiet < 200; quiet = read() === before ? quiet + 1 : 0) {
    before = read();
    await turn();
  }
  client.destroy();
  assert.ok(read() > 8_388_608, `${read()}`);
  assert.ok(read() < 8_388_608 + 1_000_000, `${read()}`);
});

test('the rest of a refused body may be silent for a second, and comes for two', async (t) => {
  const { port } = await startHttp(t, { routes: {} });
  const client = await connectRaw(t, port);
  client.socket.setNoDelay(true);
  let now = performance.now();
  t.mock.method(performance, 'now', () => now);
  let silences = 0;
  let end = (): void => undefined;
  const { setTimeout: later } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (...args: Parameters<typeof later>) => {
    const timer = later(...args);
    const [call, milliseconds] = args;
    if (milliseconds !== 1_000) return timer;
    end = call;
    return Object.assign(timer, { refresh: () => void (silences += 1) });
  });
  const answer = await client.ask(post('/nowhere', 'Content-Length: 9000000'));
  assert.equal(answer.status, 404);
  for (const [passed, count] of [
    [0, 1],
    [1_999, 2],
    [2, 2],
  ] as const) {
    now += passed;
    client.send('x');
    for (let iteration = 0; iteration < 20; iteration += 1) await turn();
    assert.equal(silences, count, `${passed} ms later`);
  }
  end();
  await client.ended();
});

test('who is refused without a request may be silent for a second', async (t) => {
  const client = await connectRaw(t, startHttp(t, { routes: {} }));
  const delays = watchTimers(t);
  assert.equal((await client.ask('rubbish\r\n\r\n')).status, 400);
  assert.ok(delays().includes(1_000), delays().join());
});

test('a stop waits six seconds for its requests', async (t) => {
  const find = () => ({ kind: 'not-found' }) as const;
  const run = <T>(work: () => T): T => work();
  const listener = createListener({ find, run, log: () => undefined, idPrefix: 'test' });
  const config = readConfig({});
  const upgrade = (): void => undefined;
  const server = new HttpServer({ listener, upgrade, pool: new MemoryPool(1e6), config });
  await server.listen(0, '127.0.0.1');
  const delays = watchTimers(t);
  await server.close(() => Promise.resolve());
  assert.deepEqual(delays(), [6_000]);
});

test('of 10,001 addresses that are slowed down the oldest is forgotten', async () => {
  const { accept, slowDown } = createArrivals([], () => 0);
  const addresses = Array.from({ length: 10_001 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
  for (const address of addresses) slowDown(address);
  const paused: string[] = [];
  for (const address of addresses.slice(0, 2)) {
    const socket = { pause: () => paused.push(address), once: () => undefined };
    // It is read after the pause, which comes after this test.
    accept({ ...socket, resume: () => undefined, writable: false } as never, address);
  }
  await turn();
  assert.deepEqual(paused, ['10.0.0.1']);
});

test('a request with a body that waits takes its length, up to 64 KiB', async (t) => {
  const { port, pool } = await startHttp(t, {
    routes: { 'GET /slow': () => new Promise(() => undefined) },
  });
  for (const [length, bytes] of [
    [30_000, 30_000],
    [65_536, 65_536],
    [65_537, 65_536],
  ] as const) {
    const client = await connectRaw(t, port);
    const waiting = post('/hello', `Content-Length: ${length}`);
    client.send(get('/slow') + waiting);
    // Its two header lines, and without the 16 KiB that are part of a connection.
    const expected = 4_096 + 2 * 128 + bytes - 16_384;
    for (let rounds = 0; rounds < 1_000 && pool.bytes !== expected; rounds += 1) await turn();
    assert.equal(pool.bytes, expected);
    client.socket.resetAndDestroy();
    for (let rounds = 0; rounds < 1_000 && pool.bytes !== 0; rounds += 1) await turn();
  }
});

test('a body of 512 bytes is decoded at once, a longer one in a turn', async () => {
  for (const [length, expected] of [
    [512, 0],
    [513, 1],
  ] as const) {
    let turns = 0;
    const run: RunInTurn = (work) => {
      turns += 1;
      return work();
    };
    const body = { read: () => Buffer.alloc(length), reserveValues: () => undefined };
    const incoming = { headers: {} };
    const request = new HttpRequest('1', { incoming, outgoing: {} } as never, {
      body: body as never,
      memory: new ConnectionMemory(new MemoryPool(1e6)),
      run,
    });
    assert.equal(await request.decodeBody(1e6, (bytes) => bytes.length), length);
    assert.equal(turns, expected);
  }
});

test('a request that was refused as late is not begun when the rest of its headers comes', async (t) => {
  let asked = 0;
  const env = { IDLE_TIMEOUT_SECONDS: '1' };
  const count = () => textResponse(200, String((asked += 1)));
  const { client } = await startHandler(t, count, { env });
  client.send('GET / HTTP/1.1\r\nHost: a\r\n');
  assert.equal((await client.response()).status, 408);
  client.send('\r\n');
  await client.ended();
  for (let iteration = 0; iteration < 20; iteration += 1) await turn();
  assert.equal(asked, 0);
});
