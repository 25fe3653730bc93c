/** One connection: how its requests and responses end, and how a server ends it. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { textResponse } from '../../dist/http/message.js';
import { gate, slowRoute, startHttp } from '../support/http-kit.ts';
import { assertWithin, patient } from '../support/pace.ts';
import { connectRaw, get } from '../support/raw-client.ts';
import { keepOthersServed } from '../support/prober.ts';
import { until } from '../support/until.ts';

keepOthersServed();

test('a client that ends its side after a whole request gets its response', async (t) => {
  const slow = gate();
  const asked = gate();
  const { port } = await startHttp(t, { routes: { 'GET /slow': slowRoute(slow, asked) } });
  const client = await connectRaw(t, port);
  client.send(get('/slow'));
  client.halfClose();
  await asked.opened;
  await turn();
  await turn();
  slow.open();
  assert.equal((await client.response()).body.toString(), 'slow');
  await client.ended();
});

test('a client that ends its side within a request is told so', async (t) => {
  const { port, active } = await startHttp(t, {
    routes: { 'POST /': async (request) => textResponse(200, String(await request.readBody(9))) },
  });
  for (const part of ['GET /', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab']) {
    const client = await connectRaw(t, port);
    client.send(part);
    client.halfClose();
    assert.equal((await client.response()).status, 400, part);
    await client.ended();
  }
  await until('the end of all requests', () => active() <= 0);
});

test('a failure of the service is a masked 500 with one log record of the same id', async (t) => {
  const { port, logged } = await startHttp(t, {
    routes: {
      'GET /throws': () => {
        throw new Error('secret');
      },
      'GET /rejects': () => Promise.reject(new TypeError('secret')),
      'GET /header': () => ({ status: 200, headers: ['X', 'a\nb'], body: 'x' }),
    },
  });
  const client = await connectRaw(t, port);
  for (const path of ['/throws', '/rejects', '/header']) {
    const response = await client.ask(get(path));
    assert.equal(response.status, 500, path);
    assert.doesNotMatch(response.body.toString(), /secret|\.js|TypeError/, path);
    assert.equal(logged.at(-1)?.['requestId'], response.headers.get('x-request-id'), path);
  }
  assert.equal(logged.length, 3);
});

test('a large response is counted until it is taken, and a second one is refused meanwhile', async (t) => {
  const responseBytes = 30_000_000;
  const routes = { 'GET /large': () => textResponse(200, 'x'.repeat(responseBytes)) };
  // Room for one that waits, and not for a second one beside it.
  const env = { ...patient, REQUEST_MEMORY_BYTES_MAX: '67108864' };
  const { port, pool } = await startHttp(t, { routes, env });
  const slow = await connectRaw(t, port);
  slow.send(get('/large'));
  await once(slow.socket, 'data');
  slow.socket.pause();
  assert.equal(pool.bytes, responseBytes);
  const other = await connectRaw(t, port);
  const refused = await other.ask(get('/large'));
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  slow.socket.resume();
  assert.equal((await slow.response()).body.length, responseBytes);
  await until('an empty pool', () => pool.bytes <= 0);
  assert.equal((await other.ask(get('/large'))).status, 200);
});

test('a stop waits for a response under way, then ends its connection at once', async (t) => {
  const asked = gate();
  const slow = gate();
  const body = new Readable({ read: () => undefined });
  const { port, stop } = await startHttp(t, {
    routes: {
      'GET /slow': slowRoute(slow, asked),
      'GET /stream': () => ({ status: 200, headers: [], body }),
    },
  });
  const [idle, streaming, waiting] = await Promise.all(
    Array.from({ length: 3 }, () => connectRaw(t, port)),
  );
  assert.ok(idle && streaming && waiting);
  await idle.ask(get('/hello'));
  body.push('first ');
  streaming.send(get('/stream') + get('/hello'));
  waiting.send(get('/slow'));
  await asked.opened;
  const started = performance.now();
  const stopped = stop();
  await idle.ended();
  slow.open();
  const response = await waiting.response();
  assert.deepEqual([response.status, response.headers.get('connection')], [200, 'close']);
  body.push('last');
  body.push(null);
  assert.equal((await streaming.response()).body.toString(), 'first last');
  const late = await streaming.response();
  assert.deepEqual([late.status, late.headers.get('retry-after')], [503, '5']);
  await stopped;
  assertWithin(5_000, performance.now() - started);
});

test('a stop ends what does not finish within its limit', async (t) => {
  const asked = gate();
  const routes = { 'GET /never': slowRoute(gate(), asked) };
  const { port, stop } = await startHttp(t, { drainSeconds: 1, routes });
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
  for (const [at, client] of clients.slice(1).entries()) {
    const { headers } = await client.ask(get('/hello'));
    assert.equal(headers.get('connection'), 'keep-alive', `client ${at}`);
  }
  const settled = settle(3_600_000);
  await assert.rejects(connectRaw(t, port), { code: 'ECONNREFUSED' });
  for (const [at, client] of clients.entries()) {
    const { status, headers } = await client.ask(get('/hello'));
    assert.deepEqual([status, headers.get('connection')], [200, 'close'], `client ${at}`);
    await client.ended();
  }
  await settled;
  await stop();
});

test('what was upgraded is not waited for while a server settles', async (t) => {
  const { port, settle } = await startHttp(t, {
    routes: {},
    upgrade: (_incoming, socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  });
  const client = await connectRaw(t, port);
  client.send(get('/', 'Connection: Upgrade', 'Upgrade: websocket'));
  assert.equal((await client.response('HEAD')).status, 101);
  let isSettled = false;
  void settle(3_600_000).then(() => (isSettled = true));
  await until('the end of settling', () => isSettled);
  client.socket.destroy();
});

test('a server does not wait for what stays idle longer than it is told to', async (t) => {
  const { port, settle, stop } = await startHttp(t, { routes: {} });
  const idle = await connectRaw(t, port);
  await settle(1);
  const stopped = stop();
  await idle.ended();
  await stopped;
});

test('a body with a content coding is 415 and says what is accepted (R6a)', async (t) => {
  const routes = { 'POST /': () => textResponse(200, 'no') };
  const client = await connectRaw(t, startHttp(t, { routes }));
  const ask = (coding: string) =>
    client.ask(
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: ${coding}\r\nContent-Length: 1\r\n\r\nx`,
    );
  const refused = await ask('gzip');
  assert.deepEqual([refused.status, refused.headers.get('accept-encoding')], [415, 'identity']);
  assert.equal((await ask('Identity')).status, 200);
});
