/** Requests of one connection, one after the other (RFC 9112 §9.3.2, R33). */

import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { emptyResponse, textResponse } from '../../dist/http/message.js';
import { gate, slowRoute, startHttp } from '../support/http-kit.ts';
import { connectRaw, get } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';
import { until } from '../support/until.ts';

/** `what` is a method and a path. */
function send(what: string, body = '', ...headers: readonly string[]): string {
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  return `${[`${what} HTTP/1.1`, 'Host: a', length, ...headers].join('\r\n')}\r\n\r\n${body}`;
}

/** `/count` answers with how often it was asked. */
async function startCounting(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  let asked = 0;
  const slow = gate();
  const kit = await startHttp(t, {
    env,
    routes: {
      'GET /count': () => {
        asked += 1;
        return textResponse(200, String(asked));
      },
      'POST /count': () => {
        asked += 1;
        return emptyResponse(201);
      },
      'DELETE /count': () => {
        asked += 100;
        return emptyResponse(204);
      },
      'POST /echo': async (request) =>
        textResponse(200, (await request.readBody(1_000_000)).toString('latin1')),
      'GET /slow': slowRoute(slow),
      'GET /large': () => textResponse(200, 'x'.repeat(8_000_000)),
    },
  });
  const client = await connectRaw(t, kit.port);
  return { ...kit, client, slow, asked: () => asked };
}

test('what is written is read by the request behind it: PUT and POST before GET, in one packet', async (t) => {
  const server = await startServer(t);
  const [post] = (await (await server.fetch('/posts')).json()) as { id: string }[];
  const json = 'Content-Type: application/json';
  const path = `/posts/${post?.id}`;
  const client = await connectRaw(t, server.port);
  const texts = ['one', 'two', 'three'];
  const put = (title: string): string =>
    send(`PUT ${path}`, JSON.stringify({ title, content: 'c' }), json);
  client.send(texts.map((title) => put(title) + get(path)).join(''));
  for (const title of texts) {
    assert.equal((await client.response()).status, 204, title);
    assert.ok((await client.response()).body.includes(`"title":"${title}"`), title);
  }
});

describe(
  'behind a response that ends the connection nothing is read',
  { concurrency: true },
  () => {
    const ending: Readonly<Record<string, string>> = {
      'Connection: close': get('/hello', 'Connection: close'),
      'HTTP/1.0': 'GET /hello HTTP/1.0\r\n\r\n',
      'a bad Host': 'GET /hello HTTP/1.1\r\nHost: a b\r\n\r\n',
      'two Hosts': get('/hello', 'Host: b'),
      'a target with #': get('/hello#x'),
      'gzip, chunked': get('/hello', 'Transfer-Encoding: gzip, chunked'),
      h2c: get(
        '/hello',
        'Connection: Upgrade, HTTP2-Settings',
        'Upgrade: h2c',
        'HTTP2-Settings: A',
      ),
      'POST with Upgrade: websocket': send(
        'POST /echo',
        'x',
        'Connection: Upgrade',
        'Upgrade: websocket',
      ),
    };
    for (const [what, first] of Object.entries(ending)) {
      test(what, async (t) => {
        const { client, asked } = await startCounting(t);
        // What follows is nested, so that it is a request wherever it is read from.
        const behind = send('POST /count', send('DELETE /count'));
        client.send(first + behind);
        assert.equal((await client.ask(behind)).headers.get('connection'), 'close');
        await client.ended();
        assert.equal(asked(), 0);
      });
    }

    test('a body that is not read', async (t) => {
      const { client, asked } = await startCounting(t);
      client.send(send('POST /nowhere', 'x'.repeat(300_000)) + get('/count'));
      assert.equal((await client.response()).status, 404);
      await client.ended();
      assert.equal(asked(), 0);
    });
  },
);

describe(
  'upgrades, CONNECT and what is no request wait for responses',
  { concurrency: true },
  () => {
    const upgrade = get('/', 'Connection: Upgrade', 'Upgrade: websocket');
    const behind: Readonly<Record<string, readonly [string, number]>> = {
      garbage: ['rubbish\r\n\r\n', 400],
      'a refused upgrade': [upgrade, 404],
      CONNECT: ['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 405],
      'a bad body': [
        `${send('POST /echo').replace('Content-Length: 0', 'Transfer-Encoding: chunked')}zz\r\n`,
        400,
      ],
    };
    for (const [what, [bytes, status]] of Object.entries(behind)) {
      test(`${what}: a slow answer comes first`, async (t) => {
        const { client, slow } = await startCounting(t);
        client.send(get('/slow') + bytes);
        await turn();
        slow.open();
        assert.equal((await client.response()).body.toString(), 'slow');
        assert.equal((await client.response()).status, status);
        await client.ended();
      });
    }

    test('a WebSocket begins when the responses in front of it are sent', async (t) => {
      const client = await connectRaw(t, startServer(t));
      const handshake = [
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ];
      client.send(get('/posts').repeat(3) + get('/graphql', ...handshake));
      for (let count = 0; count < 3; count += 1)
        assert.equal((await client.response()).status, 200, `round ${count}`);
      // Like one to HEAD it has no body.
      assert.equal((await client.response('HEAD')).status, 101);
    });
  },
);

describe('requests that wait', () => {
  test('are not begun while their client does not take the response before', async (t) => {
    const { client, port, asked, pool } = await startCounting(t);
    client.socket.pause();
    client.send(get('/large') + get('/count').repeat(32));
    const other = await connectRaw(t, port);
    assert.equal((await other.ask(get('/count'))).body.toString(), '1');
    assert.ok(pool.bytes > 0, 'what waits is counted');
    client.socket.resume();
    assert.equal((await client.response()).body.length, 8_000_000);
    for (let count = 2; count <= 33; count += 1)
      assert.equal((await client.response()).body.toString(), String(count), `round ${count}`);
    assert.deepEqual([asked(), pool.bytes], [33, 0]);
  });

  test('are thirty-two at most: one more ends the connection', async (t) => {
    const { client, port, asked, slow, pool } = await startCounting(t);
    client.send(get('/slow') + get('/count').repeat(33));
    await client.ended();
    slow.open();
    assert.equal(asked(), 0);
    await until('an empty pool', () => pool.bytes <= 0);
    const other = await connectRaw(t, port);
    other.send(get('/count').repeat(33));
    for (let count = 1; count <= 33; count += 1)
      assert.equal((await other.response()).body.toString(), String(count), `round ${count}`);
  });

  test('are counted: where there is no memory for more the connection ends', async (t) => {
    const { client, asked, slow } = await startCounting(t, { REQUEST_MEMORY_BYTES_MAX: '1048576' });
    client.send(get('/slow') + get('/count').repeat(20));
    await client.ended();
    slow.open();
    assert.equal(asked(), 0);
  });

  test('with a body are read whole in their turn, also where it comes later', async (t) => {
    const { client, slow } = await startCounting(t);
    const body = 'x'.repeat(300_000);
    const whole = send('POST /echo', body);
    client.send(get('/slow') + whole.slice(0, 1_000));
    await turn();
    slow.open();
    assert.equal((await client.response()).body.toString(), 'slow');
    assert.equal((await client.ask(whole.slice(1_000) + get('/count'))).body.toString(), body);
    assert.equal((await client.response()).body.toString(), '1');
  });

  for (const [what, head, end] of [
    ['whole', 'Content-Length: 40000', ''],
    ['of an unknown length', 'Transfer-Encoding: chunked', ''],
    ['with invalid bytes at the end', 'Transfer-Encoding: chunked', 'zz\r\n'],
  ] as const) {
    test(`give back the memory of a body ${what} when the connection ends`, async (t) => {
      const { client, slow, pool } = await startCounting(t, { IDLE_TIMEOUT_SECONDS: '300' });
      const chunk = 'x'.repeat(40_000);
      const body = head.startsWith('T') ? `9c40\r\n${chunk}\r\n` : chunk;
      client.send(`${get('/slow')}POST /echo HTTP/1.1\r\nHost: a\r\n${head}\r\n\r\n${body}${end}`);
      await until('the body in the pool', () => pool.bytes >= chunk.length);
      client.socket.resetAndDestroy();
      await until('an empty pool', () => pool.bytes === 0);
      slow.open();
      await turn();
      assert.equal(pool.bytes, 0);
    });
  }
});
