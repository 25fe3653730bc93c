/** What comes to a client that says nothing: each test waits for seconds, and all wait together. */

import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { startEndpoint } from '../support/graphql-endpoint.js';
import { connectByHand, connectReady, type HandClient } from '../support/ws-clients.js';

const newer = ['graphql-transport-ws'];
const older = { 'the sub-protocol graphql-ws': ['graphql-ws'], 'no sub-protocol': [] };

async function connect(t: TestContext, protocols: readonly string[]): Promise<HandClient> {
  const { port } = await startEndpoint(t);
  return connectByHand(port, { protocols });
}

describe('a client that says nothing', { concurrency: true }, () => {
  test('without connection_init the socket closes with 4408 after 5 seconds', async (t) => {
    const timers = t.mock.method(globalThis, 'setTimeout');
    const client = await connect(t, newer);
    assert.ok(timers.mock.calls.some(({ arguments: [, milliseconds] }) => milliseconds === 5_000));
    assert.deepEqual(await client.closed, {
      code: 4408,
      reason: 'Connection initialisation timeout',
    });
  });

  test('without connection_init the socket closes with 4408 though pings come', async (t) => {
    const client = await connect(t, newer);
    client.send({ type: 'ping' });
    assert.deepEqual(await client.next(), { type: 'pong' });
    assert.equal((await client.closed).code, 4408);
    assert.deepEqual(client.received, []);
  });

  for (const [name, protocols] of Object.entries(older)) {
    test(`with ${name} and without connection_init the socket closes with 4408`, async (t) => {
      const client = await connect(t, protocols);
      assert.equal((await client.closed).code, 4408);
    });

    test(`with ${name} ka comes at an interval, and not right after the acknowledgement`, async (t) => {
      const { port } = await startEndpoint(t, { constants: { wsPingSeconds: 1 } });
      const often = await connectReady(port, { protocols });
      for (let count = 0; count < 2; count += 1) {
        assert.deepEqual(await often.next(), { type: 'ka' });
      }
      await often.close();
      const { port: other } = await startEndpoint(t);
      const seldom = await connectReady(other, { protocols });
      seldom.send({ type: 'ping' });
      assert.deepEqual(await seldom.next(), { type: 'pong' });
      await seldom.close();
    });
  }
});
