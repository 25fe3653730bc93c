import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { gate, slowRoute, startHttp } from '../support/http-kit.ts';
import { keepOthersServed } from '../support/prober.ts';
import { connectRaw, get } from '../support/raw-client.ts';

keepOthersServed();

test('a stream that fails cuts its answer short, with one log record', async (t) => {
  const { port, logged, active } = await startHttp(t, {
    routes: {
      'GET /': () => {
        const body = Readable.from(
          (function* () {
            yield Buffer.from('first');
            throw new Error('disk');
          })(),
        );
        return { status: 200, headers: [], body };
      },
    },
  });
  const client = await connectRaw(t, port);
  client.send(get('/'));
  await assert.rejects(client.answer());
  await client.ended();
  while (active() > 0) await turn();
  assert.deepEqual(
    logged.map(({ event }) => event),
    ['answer cut short'],
  );
  assert.match(String(logged[0]?.['requestId']), /^test-./);
});

test('a client that leaves a download ends its stream, without a log record', async (t) => {
  const closed = gate();
  const { port, logged } = await startHttp(t, {
    routes: {
      'GET /': () => {
        const body = new Readable({
          read() {
            this.push(Buffer.alloc(65_536));
          },
        });
        body.once('close', closed.open);
        return { status: 200, headers: [], body };
      },
    },
  });
  const client = await connectRaw(t, port);
  client.send(get('/'));
  client.socket.once('data', () => client.socket.resetAndDestroy());
  await closed.opened;
  assert.deepEqual(logged, []);
});

test('of pipelined streams the first is made, and none when its client leaves', async (t) => {
  const closed = gate();
  let made = 0;
  const { port, logged } = await startHttp(t, {
    routes: {
      'GET /': () => {
        const body = new Readable({ read: () => undefined });
        body.push('x');
        body.once('close', closed.open);
        made += 1;
        return { status: 200, headers: [], body };
      },
    },
  });
  const client = await connectRaw(t, port);
  client.send(get('/').repeat(3));
  client.socket.once('data', () => client.socket.resetAndDestroy());
  await closed.opened;
  assert.deepEqual([made, logged], [1, []]);
});

test('a stream behind another answer hears that its client has ended its side', async (t) => {
  const slow = gate();
  const left = gate();
  const { port } = await startHttp(t, {
    routes: {
      'GET /slow': slowRoute(slow),
      'GET /': () => {
        const body = new Readable({ read: () => undefined });
        body.push('x');
        body.once('peerEnd', () => body.destroy()).once('close', left.open);
        return { status: 200, headers: [], body };
      },
    },
  });
  const client = await connectRaw(t, port);
  client.send(get('/slow') + get('/'));
  client.halfClose();
  slow.open();
  assert.equal((await client.answer()).body.toString(), 'slow');
  await left.opened;
  await client.ended();
});

test('a client that does not read holds back the stream it asked for', async (t) => {
  let produced = 0;
  const paused = gate();
  const { port } = await startHttp(t, {
    env: { IDLE_TIMEOUT_SECONDS: '1' },
    routes: {
      'GET /': () => {
        const body = new Readable({
          read() {
            produced += 65_536;
            this.push(Buffer.alloc(65_536));
          },
        });
        body.once('close', paused.open);
        return { status: 200, headers: [], body };
      },
    },
  });
  const client = await connectRaw(t, port);
  client.socket.pause();
  client.send(get('/'));
  await paused.opened; // ended by the idle limit
  assert.ok(produced < 64 * 1024 * 1024, `${produced} bytes`);
});
