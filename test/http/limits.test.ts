import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { startHandler } from '../support/http-kit.ts';
import { keepOthersServed } from '../support/prober.ts';
import { connectRaw, get } from '../support/raw-client.ts';
import { startServer } from '../support/server.ts';
import { until } from '../support/until.ts';
import { testAtLength } from '../support/long.ts';
import { assertWithin } from '../support/pace.ts';

keepOthersServed();

const seconds = { IDLE_TIMEOUT_SECONDS: '2', KEEP_ALIVE_SECONDS: '1' };

describe('time limits', { concurrency: true }, () => {
  test('a connection that never sends a byte ends within the limit of headers', async (t) => {
    const client = await connectRaw(t, startServer(t, { env: seconds }));
    const took = await client.ended();
    assert.ok(took > 1_500, `${took} ms`);
    assertWithin(6_000, took);
  });

  testAtLength('the limit of headers is 10 s where a request may take longer', async (t) => {
    const client = await connectRaw(t, startServer(t));
    const took = await client.ended();
    assert.ok(took > 9_000, `${took} ms`);
    assertWithin(20_000, took);
  });

  const posted = 'POST /posts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
  for (const [what, requestsBefore, begin, piece] of [
    ['headers', 0, 'GET /hello HTTP/1.1\r\n', 'a: b\r\n'],
    ['headers of a second request', 1, 'GET /hello HTTP/1.1\r\n', 'a: b\r\n'],
    ['a body of a length', 0, `${posted}Content-Length: 1000\r\n\r\n`, ' '],
    ['a chunked body', 0, `${posted}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
  ] as const) {
    test(`what drips in ends within its limit, with 408: ${what}`, async (t) => {
      const env = { ...seconds, KEEP_ALIVE_SECONDS: requestsBefore === 0 ? '1' : '60' };
      const client = await connectRaw(t, startServer(t, { env }));
      for (let count = 0; count < requestsBefore; count += 1)
        assert.equal((await client.ask(get('/hello'))).status, 200, `round ${count}`);
      client.send(begin);
      const dripping = setInterval(() => client.send(piece), 100);
      t.after(() => clearInterval(dripping));
      assert.equal((await client.response()).status, 408);
      const took = await client.ended();
      assert.ok(took > 500, `${took} ms`);
      assertWithin(8_000, took);
    });
  }

  testAtLength('an idle connection ends after its keep-alive time, not before', async (t) => {
    const { port } = await startServer(t, { env: { ...seconds, KEEP_ALIVE_SECONDS: '2' } });
    const client = await connectRaw(t, port);
    for (let count = 0; count < 3; count += 1) {
      assert.equal((await client.ask(get('/hello'))).status, 200, `round ${count}`);
      await wait(700);
    }
    const took = await client.ended();
    assert.ok(took > 3_000, `${took} ms`);
    assertWithin(6_000, took);
  });

  test('a handler that takes longer than the idle limit loses its connection', async (t) => {
    const { client, stop } = await startHandler(t, () => new Promise(() => undefined), {
      env: { ...seconds, IDLE_TIMEOUT_SECONDS: '1' },
    });
    client.send(get('/'));
    assertWithin(6_000, await client.ended());
    const started = performance.now();
    await stop();
    assertWithin(5_000, performance.now() - started);
  });
});

describe('bodies that nobody wants', { concurrency: true }, () => {
  for (const expect of ['X: y', 'Expect: 100-continue']) {
    test(`a large declared body is answered at once and read only a little: ${expect}`, async (t) => {
      const { port, config } = await startServer(t);
      for (const length of [config.bodyBytesMax + 1, 10_000_000_000]) {
        const client = await connectRaw(t, port);
        const headers = `Content-Type: application/json\r\nContent-Length: ${length}\r\n${expect}`;
        client.send(`POST /posts HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n`);
        if (expect === 'X: y') client.send(Buffer.alloc(config.bodyBytesMax, ' '));
        assert.equal((await client.response()).status, 413, `${length}`);
        assertWithin(2_000, await client.ended());
      }
    });
  }

  test('a client that sends a refused body to its end before it reads can do so', async (t) => {
    const { port } = await startServer(t);
    for (const { pieces, pieceBytes } of [
      { pieces: 15, pieceBytes: 65_536 },
      // More than the network holds back, and than a moment brings.
      { pieces: 25, pieceBytes: 262_144 },
    ]) {
      const client = await connectRaw(t, port);
      const length = `Content-Length: ${pieces * pieceBytes}`;
      client.send(`POST /nowhere HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n`);
      for (let count = 0; count < pieces; count += 1) {
        await new Promise<void>((resolve, reject) => {
          client.socket.write(Buffer.alloc(pieceBytes), (error) => {
            if (error) reject(error);
            else resolve();
          });
        });
        await wait(pieces);
      }
      assert.equal((await client.response()).status, 404, `${pieces}`);
      assertWithin(2_000, await client.ended());
    }
  });

  test('bytes that follow a bad chunk do not cost the client its response', async (t) => {
    const client = await connectRaw(t, startServer(t));
    const head = 'POST /posts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
    client.send(`${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`);
    for (let count = 0; count < 20; count += 1) client.send(Buffer.alloc(65_536, 'z'));
    assert.equal((await client.response()).status, 400);
    await client.ended();
  });
});

test('connections beyond the limit are dropped, and one that ends makes room', async (t) => {
  for (const [last, status] of [
    [get('/hello', 'Connection: close'), 200],
    // The client leaves its side open.
    ['no request\r\n\r\n', 400],
  ] as const) {
    const { port } = await startServer(t, { env: { CONNECTIONS_MAX: '2' }, probed: false });
    const [first] = [await connectRaw(t, port), await connectRaw(t, port)];
    const beyond = await connectRaw(t, port);
    await beyond.ended();
    assert.equal((await first.ask(last)).status, status);
    if (status === 200) first.halfClose();
    await first.ended();
    await until(`room after ${status}`, async () => {
      const next = await connectRaw(t, port);
      return (await next.ask(get('/hello')).catch(() => undefined))?.status === 200;
    });
  }
});
