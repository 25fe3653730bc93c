/** New connections of an address whose connection was ended for the pieces of its body. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import timers from 'node:timers/promises';
import { createArrivals } from '../../dist/http/server/arrivals.js';
import { syncMocks } from '../support/builtins.ts';
import { gate, slowRoute, startHttp } from '../support/http-kit.ts';
import { times } from '../support/lists.ts';
import { connectRaw, get } from '../support/raw-client.ts';
import { until } from '../support/until.ts';

type Delay = typeof timers.setTimeout;

/** Replaces what the program waits with, until the test ends. The tests wait for themselves. */
function replaceDelay(t: TestContext, toDelay: (real: Delay) => (milliseconds: number) => unknown) {
  const real = timers.setTimeout;
  const replaced = toDelay(real);
  t.mock.method(timers, 'setTimeout', ((milliseconds = 0, value, options) =>
    options?.ref === false ? replaced(milliseconds) : real(milliseconds, value, options)) as Delay);
  syncMocks(t);
}

/** Arrivals by a clock that their waits move on; and when each connection was read by it. */
function startArrivals(t: TestContext, trusted: readonly string[] = []) {
  let clock = 1_000;
  const readAt: number[] = [];
  replaceDelay(t, (real) => async (milliseconds) => {
    await real(0);
    clock += milliseconds;
  });
  const { accept, slowDown } = createArrivals(trusted, () => clock);
  const come = async (address: string, count = 1): Promise<readonly Socket[]> => {
    const sockets = times(count).map(() => new Socket());
    for (const socket of sockets) {
      socket.once('resume', () => readAt.push(clock));
      accept(socket, address);
    }
    await new Promise<void>(queueMicrotask);
    return sockets;
  };
  return { come, slowDown, readAt, pass: (milliseconds: number) => (clock += milliseconds) };
}

/** That the connections are read, at most one more in each iteration of the event loop. */
async function areRead(sockets: readonly Socket[]): Promise<void> {
  const counts = new Set<number>();
  await until('all are read', async () => {
    for (let iterations = 0; iterations < 1_000; iterations += 1) {
      counts.add(sockets.filter((socket) => !socket.isPaused()).length);
      await new Promise(setImmediate);
    }
    return counts.has(sockets.length);
  });
  assert.deepEqual([...counts], [0, ...times(sockets.length).map((at) => at + 1)]);
}

const isPaused = (socket?: Socket): boolean | undefined => socket?.isPaused();

test('the connections of such an address are spaced by 50 ms, those of others are not', async (t) => {
  const { come, slowDown, readAt, pass } = startArrivals(t);
  assert.deepEqual((await come('192.0.2.1')).map(isPaused), [false]);
  slowDown('192.0.2.1');
  const sockets = await come('192.0.2.1', 3);
  assert.deepEqual((await come('192.0.2.2')).map(isPaused), [false]);
  await areRead(sockets);
  assert.deepEqual(readAt, [1_050, 1_100, 1_150]);
  pass(50);
  assert.deepEqual((await come('192.0.2.1', 2)).map(isPaused), [false, false]);
});

test('those of several addresses are read one in an iteration of the event loop', async (t) => {
  const { come, slowDown } = startArrivals(t);
  const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.3'];
  addresses.forEach(slowDown);
  await areRead((await Promise.all(addresses.map((address) => come(address)))).flat());
});

test('those that come while one is read are behind it', async (t) => {
  const { come, slowDown, readAt } = startArrivals(t);
  slowDown('192.0.2.1');
  const [first = assert.fail()] = await come('192.0.2.1');
  const others = new Promise<readonly Socket[]>((resolve) => {
    first.once('resume', () => resolve(come('192.0.2.1', 2)));
  });
  await areRead(await others);
  assert.deepEqual(readAt, [1_050, 1_100, 1_150]);
});

test('one that has ended, before it is read or then, takes no time', async (t) => {
  const { come, slowDown, readAt } = startArrivals(t);
  slowDown('192.0.2.1');
  const left = await come('192.0.2.1', 100);
  left.slice(50).forEach((socket) => socket.destroy());
  for (const socket of left) socket.once('resume', () => socket.destroy());
  await areRead(await come('192.0.2.1'));
  assert.deepEqual(
    readAt,
    times(51).map(() => 1_050),
  );
});

test('one that has sent a request when it is read takes no time', async (t) => {
  const { come, slowDown, readAt } = startArrivals(t);
  slowDown('192.0.2.1');
  const sockets = await come('192.0.2.1', 3);
  const bytesRead = (bytes: number) => ({ get: () => bytes });
  for (const [at, bytes] of [0, 18, 0].entries()) {
    Object.defineProperty(sockets[at], 'bytesRead', bytesRead(bytes));
  }
  await areRead([...sockets, ...(await come('192.0.2.1'))]);
  assert.deepEqual(readAt, [1_050, 1_100, 1_100, 1_150]);
});

test('clients that have left keep nobody waiting until the request is late', async (t) => {
  const { port } = await startHttp(t, { routes: {} });
  const costly = await connectRaw(t, port);
  const head = 'POST /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
  costly.send(head + '1\r\na\r\n'.repeat(1_000));
  await costly.ended();
  for (const socket of times(400).map(() => connect(port, '127.0.0.1'))) {
    await once(socket, 'connect');
    socket.destroy();
  }
  const other = await connectRaw(t, port);
  assert.equal((await other.ask(get('/hello'))).status, 200);
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
  const delays: number[] = [];
  replaceDelay(t, (real) => (milliseconds) => {
    delays.push(Math.round(milliseconds));
    return real(milliseconds);
  });
  const others = [1, 2, 3, 4].map(async () => {
    const other = await connectRaw(t, port);
    assert.equal((await other.ask(get('/hello'))).status, 200);
  });
  await Promise.all(others);
  assert.equal(delays.filter((milliseconds) => milliseconds === 50).length, 4, delays.join());
  slow.open();
});

test('a trusted proxy is not slowed down, however its address is written', async (t) => {
  const { come, slowDown } = startArrivals(t, ['10.0.0.0/8', '::1']);
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '::1', '']) {
    slowDown(address);
    assert.deepEqual((await come(address)).map(isPaused), [false], address);
  }
});
