import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { textResponse } from '../../dist/http/message.js';
import { gate, startHttp } from '../support/http-kit.js';
import { connectRaw, get } from '../support/raw-client.js';
import { assertWithin } from '../support/pace.js';

test('a stop waits for a response under way, then ends its connection at once', async (t) => {
  const asked = gate();
  const slow = gate();
  const body = new Readable({ read: () => undefined });
  const { port, stop } = await startHttp(t, {
    routes: {
      'GET /slow': async () => {
        asked.open();
        await slow.opened;
        return textResponse(200, 'slow');
      },
      'GET /stream': () => ({ status: 200, headers: [], body }),
      'GET /hello': () => textResponse(200, 'hello'),
    },
  });
  const [idle, half, silent, streaming, waiting] = await Promise.all(
    Array.from({ length: 5 }, () => connectRaw(t, port)),
  );
  assert.ok(idle && half && silent && streaming && waiting);
  await idle.ask(get('/hello'));
  half.send('GET /hello HTTP/1.1\r\nHo');
  body.push('first ');
  streaming.send(get('/stream'));
  waiting.send(get('/slow'));
  await asked.opened;
  const started = performance.now();
  const stopped = stop();
  await Promise.all([idle.ended(), half.ended(), silent.ended()]);
  slow.open();
  const response = await waiting.response();
  assert.deepEqual([response.status, response.headers.get('connection')], [200, 'close']);
  body.push('last');
  body.push(null);
  assert.equal((await streaming.response()).body.toString(), 'first last');
  await stopped;
  assertWithin(5_000, performance.now() - started);
});

test('a stop ends what does not finish within its limit', async (t) => {
  const asked = gate();
  const { port, stop } = await startHttp(t, {
    drainSeconds: 1,
    routes: {
      'GET /never': () => {
        asked.open();
        return new Promise(() => undefined);
      },
    },
  });
  const client = await connectRaw(t, port);
  client.send(get('/never'));
  await asked.opened;
  const started = performance.now();
  await stop();
  assertWithin(5_000, performance.now() - started);
});

test('connections that wait have one more answer while a server settles, and end with it', async (t) => {
  const { port, settle, stop } = await startHttp(t, { routes: {} });
  const clients = await Promise.all(Array.from({ length: 3 }, () => connectRaw(t, port)));
  for (const client of clients.slice(1)) {
    const { headers } = await client.ask(get('/hello'));
    assert.equal(headers.get('connection'), 'keep-alive');
  }
  const settled = settle(3_600_000);
  await assert.rejects(connectRaw(t, port), { code: 'ECONNREFUSED' });
  for (const client of clients) {
    const { status, headers } = await client.ask(get('/hello'));
    assert.deepEqual([status, headers.get('connection')], [200, 'close']);
    await client.ended();
  }
  await settled;
  await stop();
});

test('a server does not wait for what stays idle longer than it is told to', async (t) => {
  const { port, settle, stop } = await startHttp(t, { routes: {} });
  const idle = await connectRaw(t, port);
  await settle(1);
  const stopped = stop();
  await idle.ended();
  await stopped;
});
