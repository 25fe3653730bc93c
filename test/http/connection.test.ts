import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { textResponse, type Handler } from '../../dist/http/message.js';
import { gate, slowRoute, startHttp } from '../support/http-kit.js';
import { connectRaw, get } from '../support/raw-client.js';
import { keepOthersServed } from '../support/prober.js';
import { until } from '../support/until.js';

keepOthersServed();

const hello: Handler = () => textResponse(200, 'hello');

test('a client that ends its side after a whole request gets its response', async (t) => {
  const slow = gate();
  const asked = gate();
  const { port } = await startHttp(t, {
    routes: {
      'GET /slow': slowRoute(slow, asked),
    },
  });
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
    assert.equal((await client.response()).status, 400);
    await client.ended();
  }
  await until(() => active() <= 0);
});

test('Connection: close is kept, and HTTP/1.0 closes by itself', async (t) => {
  const { port } = await startHttp(t, { routes: { 'GET /hello': hello } });
  for (const text of [get('/hello', 'Connection: close'), 'GET /hello HTTP/1.0\r\n\r\n']) {
    const client = await connectRaw(t, port);
    assert.equal((await client.ask(text)).headers.get('connection'), 'close');
    await client.ended();
  }
});

test('HEAD has the headers of GET and no body, for texts and for streams (R9)', async (t) => {
  let destroyed = 0;
  const { port } = await startHttp(t, {
    routes: {
      'GET /text': () => textResponse(200, 'fünf'),
      'GET /stream': () => {
        const body = new Readable({ read: () => undefined });
        body.once('close', () => (destroyed += 1));
        return { status: 200, headers: ['Content-Type', 'a/b'], body };
      },
    },
  });
  const client = await connectRaw(t, port);
  const head = (path: string): string => get(path).replace('GET', 'HEAD');
  assert.equal((await client.ask(head('/text'), 'HEAD')).headers.get('content-length'), '5');
  assert.equal((await client.ask(head('/stream'), 'HEAD')).headers.get('content-type'), 'a/b');
  assert.equal((await client.ask(head('/nowhere'), 'HEAD')).status, 404);
  assert.equal((await client.ask(get('/text'))).body.toString(), 'fünf');
  assert.equal(destroyed, 1);
});

test('OPTIONS tells what a path allows, and is 404 where nothing is (R9)', async (t) => {
  const { port } = await startHttp(t, { routes: { 'GET /a': hello, 'PUT /a': hello } });
  const client = await connectRaw(t, port);
  const response = await client.ask(get('/a').replace('GET', 'OPTIONS'));
  assert.deepEqual(
    [response.status, response.headers.get('allow'), response.headers.get('content-length')],
    [204, 'GET, PUT, HEAD, OPTIONS', undefined],
  );
  assert.equal((await client.ask(get('/b').replace('GET', 'OPTIONS'))).status, 404);
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
    assert.doesNotMatch(response.body.toString(), /secret|\.js|TypeError/);
    const record = logged.at(-1);
    assert.equal(record?.['requestId'], response.headers.get('x-request-id'));
  }
  assert.equal(logged.length, 3);
});
