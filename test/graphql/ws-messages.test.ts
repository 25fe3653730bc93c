/** The messages of a WebSocket: how long, how many and how slow they may be. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { holdTurns, startEndpoint } from '../support/graphql-endpoint.ts';
import { times } from '../support/lists.ts';
import { keepOthersServed } from '../support/prober.ts';
import { until } from '../support/until.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

keepOthersServed();

const subscription = 'subscription { commentAdded { content } }';

describe('messages', { concurrency: 4 }, () => {
  const env = { BODY_BYTES_MAX: '100000' };
  for (const [name, type, answer] of [
    ['graphql-transport-ws', 'subscribe', 'next'],
    ['graphql-ws', 'start', 'data'],
  ] as const) {
    test(`one on ${name} is as long as a body, a longer one is an error for its id`, async (t) => {
      const client = await connectReady(startEndpoint(t, { env }), { protocols: [name] });
      const text = JSON.stringify({ id: 'a', type, payload: { query: '{ __typename }' } });
      client.sendText(text.padEnd(100_001));
      const { payload, ...error } = await client.next();
      assert.deepEqual(error, { type: 'error', id: 'a' });
      const [{ extensions }] = [payload].flat() as [{ extensions: object }];
      assert.deepEqual(extensions, { code: 'PAYLOAD_TOO_LARGE' });
      client.sendText(text.padEnd(100_000));
      assert.equal((await client.next()).type, answer);
    });
  }

  test('one that is longer than four bodies closes with 1009', async (t) => {
    const client = await connectReady(startEndpoint(t, { env }));
    client.sendText('{"type":"ping"}'.padEnd(400_000));
    assert.equal((await client.next()).type, 'pong');
    client.sendText('{"type":"ping"}'.padEnd(400_001));
    assert.equal((await client.closed).code, 1009);
  });

  test('one that does not end is counted, and does not stay', async (t) => {
    const { port, pool } = await startEndpoint(t, { constants: { wsPingSeconds: 1 } });
    const client = await connectReady(port);
    client.socket.send('['.repeat(100_000), { fin: false });
    await until('the bytes of the message', () => pool.bytes >= 100_000);
    assert.equal((await client.closed).code, 1008);
    await until('nothing held', () => pool.bytes === 0);
  });

  for (const name of ['graphql-transport-ws', 'graphql-ws']) {
    test(`a burst on ${name} is slowed, not punished`, async (t) => {
      const endpoint = await startEndpoint(t);
      const client = await connectReady(endpoint.port, { protocols: [name] });
      // A page of 90 subscriptions changes four times; each query is long enough to wait for a turn.
      for (const round of times(4)) {
        for (const id of times(90)) client.send(subscribe(`${round}.${id}`, subscription));
        if (round === 3) break;
        for (const id of times(90)) client.send({ type: 'complete', id: `${round}.${id}` });
      }
      for (const at of times(300)) client.send(subscribe(`q${at}`, '{ a }'.padEnd(600)));
      for (const at of times(300)) assert.equal((await client.next()).type, 'error', `query ${at}`);
      assert.equal(endpoint.subscriptions.count().subscribers, 90);
    });
  }

  test('one that waits when its client leaves gives its memory back', async (t) => {
    const { waiting, wrap } = holdTurns();
    const { port, pool, sockets } = await startEndpoint(t, { wrap });
    const client = await connectReady(port);
    client.sendText('{"type":"ping"}'.padEnd(60_000));
    await until('the message', () => waiting.length === 1);
    assert.ok(pool.bytes > 0);
    client.socket.terminate();
    await until('no socket', () => sockets.size === 0);
    for (const call of waiting) call();
    assert.equal(pool.bytes, 0);
  });

  // Each piece takes memory beside its bytes.
  test('a message in 256 fragments is read, one more closes with 1008', async (t) => {
    const client = await connectReady(startEndpoint(t));
    for (const length of [256, 257]) {
      for (const [at, character] of '{"type":"ping"}'.padEnd(length).split('').entries())
        client.socket.send(character, { fin: at === length - 1 });
      if (length === 256) assert.equal((await client.next()).type, 'pong');
    }
    assert.equal((await client.closed).code, 1008);
  });
});
