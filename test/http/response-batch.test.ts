import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { emptyResponse, type HttpRequest, textResponse } from '../../dist/http/message.js';
import { createResponseBatch } from '../../dist/http/server/send.js';
import { startHttp } from '../support/http-kit.ts';
import { connectRaw, get } from '../support/raw-client.ts';

/** More than leave one by one. */
const many = 16;

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

describe('the responses of a turn', () => {
  /** Sends numbers as responses; `written` are those that were. */
  function startBatch() {
    const batch = createResponseBatch((_request, { status }) => void written.push(status));
    const written: number[] = [];
    const request = {} as HttpRequest; // is only passed on
    const send = (status: number): void => batch.send(request, emptyResponse(status));
    return { send, flush: batch.flush, written };
  }

  /** A turn after a busy one. */
  async function startBusyBatch() {
    const batch = startBatch();
    for (const response of numbers(many)) batch.send(response);
    await turnOfLoop();
    assert.deepEqual(batch.written.splice(0), numbers(many));
    return batch;
  }

  it('leave one by one while there are few of them, and again after a busy turn', async () => {
    const { send, written } = await startBusyBatch();
    send(0);
    await turnOfLoop();
    for (let round = 1; round < 4; round += 1) {
      send(round);
      assert.equal(written.at(-1), round, `round ${round}`);
      await turnOfLoop();
    }
    assert.deepEqual(written, numbers(4));
  });

  it('leave at its end, in their order, after a turn that had many, or where told to', async () => {
    const { send, flush, written } = await startBusyBatch();
    send(0);
    flush();
    send(1);
    assert.deepEqual(written, [0]);
    await turnOfLoop();
    assert.deepEqual(written, [0, 1]);
  });

  it('do not wait where they are too many', async () => {
    const { send, written } = await startBusyBatch();
    for (const response of numbers(100)) send(response);
    assert.ok(written.length >= 64, String(written.length));
    await turnOfLoop();
    assert.deepEqual(written, numbers(100));
  });

  it('wait where they are more than eight, until they are 32', async () => {
    const { send, written } = startBatch();
    for (const [count, isHeld] of [
      [8, false],
      [9, true],
    ] as const) {
      for (const response of numbers(count)) send(response);
      await turnOfLoop();
      written.length = 0;
      send(0);
      assert.equal(written.length, isHeld ? 0 : 1);
      await turnOfLoop();
    }
    const busy = await startBusyBatch();
    for (const response of numbers(31)) busy.send(response);
    assert.deepEqual(busy.written, []);
    busy.send(31);
    assert.deepEqual(busy.written, numbers(32));
  });

  it('wait for a millisecond, and for the one that ends it', async (t) => {
    const { send, written } = await startBusyBatch();
    let now = performance.now();
    t.mock.method(performance, 'now', () => now);
    send(0);
    now += 1;
    send(1);
    assert.deepEqual(written, []);
    now += 0.5;
    send(2);
    assert.deepEqual(written, [0, 1, 2]);
  });
});

describe('a busy server', () => {
  /** A server whose last turn had many responses, and a client of it. */
  async function startBusy(t: TestContext) {
    let stopped: Promise<void> | undefined;
    const { port, stop } = await startHttp(t, {
      routes: {
        'GET /broken': () => {
          const body = new Readable({ read: () => undefined });
          body.destroy(new Error('the disk is gone'));
          return { status: 200, headers: [], body };
        },
        'GET /stop': () => {
          stopped = stop();
          return textResponse(200, 'stopping');
        },
      },
    });
    const clients = await Promise.all(numbers(many).map(() => connectRaw(t, port)));
    const askAll = async (): Promise<void> => {
      for (const client of clients) client.send(get('/hello'));
      for (const [at, client] of clients.entries())
        assert.equal((await client.response()).status, 200, `client ${at}`);
    };
    // Connections are accepted one in a turn; once they are, all are heard in the same one.
    await askAll();
    await askAll();
    const client = await connectRaw(t, port);
    return { client, clients, askAll, stopped: () => stopped };
  }

  const pairs = numbers(50).flatMap(() => [404, 200]);
  for (const [what, behind, ...statuses] of [
    [
      'pipelined requests in their order',
      `${get('/nowhere')}${get('/hello')}`.repeat(50),
      ...pairs,
    ],
    ['a client that has ended its side', ''],
    ['a request before it refuses bad bytes behind it', 'rubbish\r\n\r\n', 400],
    [
      'a request before it refuses an upgrade behind it',
      get('/', 'Connection: Upgrade', 'Upgrade: websocket'),
      404,
    ],
    [
      'a request before it refuses CONNECT behind it',
      'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n',
      405,
    ],
  ] as const) {
    it(`answers ${what}`, async (t) => {
      const { client } = await startBusy(t);
      client.send(get('/hello') + behind);
      if (statuses.length !== 1) client.halfClose();
      for (const [at, status] of [200, ...statuses].entries()) {
        assert.equal((await client.response()).status, status, `status ${at}`);
      }
      await client.ended();
    });
  }

  it('survives a response that fails before it is sent', async (t) => {
    const { client, askAll } = await startBusy(t);
    client.send(get('/broken'));
    await client.ended();
    await askAll();
  });

  it('answers what it has heard when it is told to stop', async (t) => {
    const { clients, stopped } = await startBusy(t);
    const [first, second] = clients;
    assert.ok(first && second);
    first.send(get('/hello'));
    second.send(get('/stop'));
    assert.equal((await first.response()).body.toString(), 'hello');
    assert.equal((await second.response()).body.toString(), 'stopping');
    await stopped();
  });
});
