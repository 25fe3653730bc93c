import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { textResponse } from '../../dist/http/message.js';
import { gate, slowRoute, startHandler, startHttp } from '../support/http-kit.ts';
import { keepOthersServed } from '../support/prober.ts';
import { connectRaw, get, type RawClient } from '../support/raw-client.ts';
import { until } from '../support/until.ts';

keepOthersServed();

const streamed = (body: Readable) => ({ status: 200, headers: [], body });

/** A stream that never ends; `produce` is told of its bytes. */
function endless(produce: (bytes: number) => void): Readable {
  return new Readable({
    read() {
      produce(65_536);
      this.push(Buffer.alloc(65_536));
    },
  });
}

test('a stream that fails cuts its response short, with one log record', async (t) => {
  function* pieces() {
    yield Buffer.from('first');
    throw new Error('disk');
  }
  const { client, logged, active } = await startHandler(t, () => streamed(Readable.from(pieces())));
  client.send(get('/'));
  await assert.rejects(client.response());
  await client.ended();
  await until('the end of all requests', () => active() <= 0);
  const found = logged.map(({ event }) => event);
  assert.deepEqual(found, ['response cut short']);
  assert.match(String(logged[0]?.['requestId']), /^test-./);
});

test('of pipelined streams the first is made, and none when its client leaves', async (t) => {
  const closed = gate();
  let made = 0;
  const { client, logged } = await startHandler(t, () => {
    const body = new Readable({ read: () => undefined });
    body.push('x');
    body.once('close', closed.open);
    made += 1;
    return streamed(body);
  });
  client.send(get('/').repeat(3));
  client.socket.once('data', () => client.socket.resetAndDestroy());
  await closed.opened;
  assert.deepEqual([made, logged], [1, []]);
});

test('a stream behind another answer hears that its client has ended its side', async (t) => {
  const slow = gate();
  const left = gate();
  const body = new Readable({ read: () => undefined });
  body.push('x');
  body.once('peerEnd', () => body.destroy()).once('close', left.open);
  const routes = { 'GET /slow': slowRoute(slow), 'GET /': () => streamed(body) };
  const { port } = await startHttp(t, { routes });
  const client = await connectRaw(t, port);
  client.send(get('/slow') + get('/'));
  client.halfClose();
  slow.open();
  assert.equal((await client.response()).body.toString(), 'slow');
  await left.opened;
  await client.ended();
});

describe('a stream', { concurrency: true }, () => {
  const behind = {
    'with nothing behind it': '',
    'in front of an upgrade': get('/', 'Connection: Upgrade', 'Upgrade: websocket'),
    'in front of CONNECT': 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
  };
  for (const [what, bytes] of Object.entries(behind)) {
    test(`${what} is held back by a client that does not read, until the idle limit`, async (t) => {
      let produced = 0;
      const closed = gate();
      const body = endless((count) => (produced += count)).once('close', closed.open);
      const env = { IDLE_TIMEOUT_SECONDS: '1' };
      const { client } = await startHandler(t, () => streamed(body), { env });
      client.socket.pause();
      client.send(get('/') + bytes);
      await closed.opened;
      assert.ok(produced < 64 * 1024 * 1024, `${produced} bytes`);
    });

    test(`${what} comes whole, and the next one too`, async (t) => {
      const pieces = Array.from({ length: 64 }, () => Buffer.alloc(65_536));
      const { client } = await startHandler(t, () => streamed(Readable.from(pieces)));
      client.send(get('/').repeat(2) + bytes);
      for (let count = 0; count < 2; count += 1)
        assert.equal((await client.response()).body.length, 64 * 65_536, `round ${count}`);
      if (bytes !== '') assert.ok((await client.response()).status >= 400);
    });
  }
});

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
