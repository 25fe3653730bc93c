/** New connections of an address whose connection was ended for the pieces of its body. */

import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { createArrivals } from '../../dist/http/server/arrivals.js';
import { gate, slowRoute, startHttp } from '../support/http-kit.ts';
import { connectRaw, get } from '../support/raw-client.ts';
import { until } from '../support/until.ts';

test('the connections of such an address are spaced by 50 ms, those of others are not', () => {
  let now = 1_000;
  const { slowDown, delay } = createArrivals([], () => now);
  assert.equal(delay('192.0.2.1'), 0);
  slowDown('192.0.2.1');
  assert.deepEqual([delay('192.0.2.1'), delay('192.0.2.1'), delay('192.0.2.2')], [50, 100, 0]);
  now += 150;
  slowDown('192.0.2.1');
  assert.equal(delay('192.0.2.1'), 50);
  now += 1_000;
  assert.deepEqual([delay('192.0.2.1'), delay('192.0.2.1')], [0, 0]);
});

test('those that are due at once are read one in an iteration of the event loop', async () => {
  const { readLater } = createArrivals([], () => 0);
  const sockets = [1, 2, 3].map(() => new Socket());
  for (const socket of sockets) readLater(socket, 1);
  const count = (): number => sockets.filter((socket) => !socket.isPaused()).length;
  await new Promise<void>(queueMicrotask);
  const counts = new Set([count()]);
  await until('all are read', async () => {
    for (let iterations = 0; iterations < 1_000; iterations += 1) {
      await new Promise(setImmediate);
      counts.add(count());
    }
    return count() === 3;
  });
  assert.deepEqual([...counts], [0, 1, 2, 3]);
});

test('after a packet of a thousand requests that find no memory connections are spaced', async (t) => {
  const slow = gate();
  const env = { REQUEST_MEMORY_BYTES_MAX: '1048576' };
  const { port } = await startHttp(t, { env, routes: { 'GET /slow': slowRoute(slow) } });
  const client = await connectRaw(t, port);
  // By this clock the time does not pass before the next connections come.
  const stopped = performance.now();
  t.mock.method(performance, 'now', () => stopped);
  client.send(get('/slow') + get('/hello').repeat(1_000));
  await client.ended();
  const delays: unknown[] = [];
  const { setTimeout: later } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (...[call, milliseconds]: Parameters<typeof later>) => {
    delays.push(Math.round(Number(milliseconds)));
    return later(call, milliseconds);
  });
  const others = [1, 2, 3, 4].map(async () => {
    const other = await connectRaw(t, port);
    assert.equal((await other.ask(get('/hello'))).status, 200);
  });
  await Promise.all(others);
  for (const due of [50, 100, 150, 200])
    assert.ok(delays.includes(due), `${due} in ${delays.join()}`);
  slow.open();
});

test('a trusted proxy is not slowed down, however its address is written', () => {
  const { slowDown, delay } = createArrivals(['10.0.0.0/8', '::1'], () => 0);
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '::1', '']) {
    slowDown(address);
    assert.equal(delay(address), 0, address);
  }
});
