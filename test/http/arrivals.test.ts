/** New connections of an address whose connection was ended for the pieces of its body. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createArrivals } from '../../dist/http/server/arrivals.js';
import { gate, slowRoute, startHttp } from '../support/http-kit.ts';
import { connectRaw, get } from '../support/raw-client.ts';

test('the connections of such an address are spaced by 25 ms, those of others are not', () => {
  let now = 1_000;
  const { slowDown, delay } = createArrivals([], () => now);
  assert.equal(delay('192.0.2.1'), 0);
  slowDown('192.0.2.1');
  assert.deepEqual([delay('192.0.2.1'), delay('192.0.2.1'), delay('192.0.2.2')], [25, 50, 0]);
  now += 75;
  slowDown('192.0.2.1');
  assert.equal(delay('192.0.2.1'), 25);
  now += 1_000;
  assert.deepEqual([delay('192.0.2.1'), delay('192.0.2.1')], [0, 0]);
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
  for (const due of [25, 50, 75, 100])
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
