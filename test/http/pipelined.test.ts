/** Requests that are pipelined behind a response that has no end. */

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { textResponse } from '../../dist/http/message.js';
import { startHttp } from '../support/http-kit.ts';
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
  // A few may wait: the stream goes on, and they are never looked at.
  const few = await connectRaw(t, port);
  few.send(get('/stream') + get('/large').repeat(3));
  const other = await connectRaw(t, port);
  assert.equal((await other.ask(get('/large'))).body.length, 40_000);
  assert.deepEqual([pool.bytes, few.socket.readyState], [0, 'open']);
  few.send(get('/large').repeat(100));
  await few.ended();
});
