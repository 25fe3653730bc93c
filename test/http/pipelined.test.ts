/** Requests that are pipelined behind a response that has no end. */

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { textResponse } from '../../dist/http/message.js';
import { gate, startHttp } from '../support/http-kit.ts';
import { connectRaw, get, type RawClient } from '../support/raw-client.ts';
import { until } from '../support/until.ts';

test('requests behind a stream without an end take no memory from others, and many of them end it', async (t) => {
  const { port, pool } = await startHttp(t, {
    drainSeconds: 0, // the stream does not end
    routes: {
      'GET /stream': () => {
        const headers = ['Connection', 'close'];
        return { status: 200, headers, body: new PassThrough().on('peerEnd', () => undefined) };
      },
      'GET /large': () => textResponse(200, 'x'.repeat(40_000)),
    },
  });
  const clients: RawClient[] = [];
  for (let count = 0; count < 6; count += 1) {
    const client = await connectRaw(t, port);
    client.send(get('/stream') + get('/large').repeat(1_000));
    clients.push(client);
  }
  for (const client of clients) await client.ended();
  await until('an empty pool', () => pool.bytes === 0);
  // A few are part of the connection: the stream goes on, and they are never looked at.
  const few = await connectRaw(t, port);
  few.send(get('/stream') + get('/large').repeat(3));
  const other = await connectRaw(t, port);
  assert.equal((await other.ask(get('/large'))).body.length, 40_000);
  assert.deepEqual([pool.bytes, few.socket.readyState], [0, 'open']);
  few.send(get('/large').repeat(100));
  await few.ended();
});

/** A stream without an end, which begins when it is told to, and a request behind which others wait. */
async function startStream(t: TestContext) {
  const begun = gate();
  const { port } = await startHttp(t, {
    // What waits keeps the server from seeing that its client has left.
    drainSeconds: 0.1,
    routes: {
      'GET /stream': async () => {
        await begun.opened;
        const body = new PassThrough().on('peerEnd', () => undefined);
        body.write('first');
        return { status: 200, headers: ['Connection', 'close'], body };
      },
    },
  });
  const client = await connectRaw(t, port);
  client.send(get('/stream'));
  return { client, begin: begun.open };
}

const hasBegun = ({ socket }: RawClient): Promise<void> =>
  until('the stream', () => socket.bytesRead > 0);

test('requests of 16 KiB that wait when such a stream begins end it', async (t) => {
  const { client, begin } = await startStream(t);
  client.send(get('/hello').repeat(4));
  for (let iteration = 0; iteration < 20; iteration += 1) await turn();
  begin();
  await client.ended();
});

test('requests of 16 KiB that come behind such a stream end it', async (t) => {
  const { client, begin } = await startStream(t);
  begin();
  await hasBegun(client);
  client.send(get('/hello').repeat(4));
  await client.ended();
});

test('three requests, of less, leave such a stream as it is', async (t) => {
  for (const isBegun of [true, false]) {
    const { client, begin } = await startStream(t);
    if (isBegun) begin();
    client.send(get('/hello').repeat(3));
    for (let iteration = 0; iteration < 20; iteration += 1) await turn();
    begin();
    await hasBegun(client);
    for (let iteration = 0; iteration < 20; iteration += 1) await turn();
    assert.equal(client.socket.readyState, 'open');
    client.destroy();
  }
});
