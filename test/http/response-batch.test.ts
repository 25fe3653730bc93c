/** A busy server, which sends the responses of an iteration together, seen from outside. */

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it, type TestContext } from 'node:test';
import { textResponse } from '../../dist/http/message.js';
import { startHttp } from '../support/http-kit.ts';
import { times } from '../support/lists.ts';
import { connectRaw, get } from '../support/raw-client.ts';

/** More than leave one by one. */
const many = 16;

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
    const clients = await Promise.all(times(many).map(() => connectRaw(t, port)));
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

  const upgrade = get('/', 'Connection: Upgrade', 'Upgrade: websocket');
  for (const [behind, ...statuses] of [
    [`${get('/nowhere')}${get('/hello')}`.repeat(16), ...times(16).flatMap(() => [404, 200])],
    [''],
    ['rubbish\r\n\r\n', 400],
    [upgrade, 404],
    ['CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n', 405],
  ] as const) {
    it(`answers a request before ${JSON.stringify(behind.slice(0, 20))}, and that`, async (t) => {
      const { client } = await startBusy(t);
      client.send(get('/hello') + behind);
      if (statuses.length !== 1) client.halfClose();
      for (const [at, status] of [200, ...statuses].entries())
        assert.equal((await client.response()).status, status, `status ${at}`);
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
