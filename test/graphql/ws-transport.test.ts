/** The newer protocol, case by case, over real sockets. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { olderProtocol, newerProtocol } from '../../dist/graphql/ws/protocols.js';
import { startEndpoint, useEndpoint } from '../support/graphql-endpoint.ts';
import { assertWithin } from '../support/pace.ts';
import {
  askUpgrade,
  connectByHand,
  connectReady,
  type HandClient,
  subscribe,
  upgradeLines,
} from '../support/ws-clients.ts';

const subscription = 'subscription { commentAdded { content } }';
const introspection = '{ __typename }';

describe('graphql-transport-ws', () => {
  const endpoint = useEndpoint();
  const connect = (): Promise<HandClient> => connectByHand(endpoint().port);
  const ready = (): Promise<HandClient> => connectReady(endpoint().port);

  describe('connection_init', () => {
    test('in a binary frame, with any payload, is acknowledged', async () => {
      const client = await connect();
      client.sendBinary('{"type":"connection_init","payload":{"a":[1,"b",null]}}');
      assert.deepEqual(await client.next(), { type: 'connection_ack' });
    });

    test('that comes after an operation is too late: 4401 (R28)', async () => {
      const client = await connect();
      client.send(subscribe('1', introspection));
      client.send({ type: 'connection_init' });
      assert.deepEqual(await client.closed, { code: 4401, reason: 'Unauthorized' });
      assert.deepEqual(client.received, []);
    });

    test('that comes twice closes with 4429', async () => {
      const client = await ready();
      client.send({ type: 'connection_init' });
      assert.deepEqual(await client.closed, {
        code: 4429,
        reason: 'Too many initialisation requests',
      });
    });

    for (const [value, reason] of [
      ['not today', 'not today'],
      ['', ''],
      [null, 'null'],
      [false, 'false'],
      [42, '42'],
      [{ a: 1 }, '{"a":1}'],
      ['é'.repeat(100), 'é'.repeat(61)],
      ['a' + '😀'.repeat(50), 'a' + '😀'.repeat(30)],
    ] as const) {
      test(`with rejectMessage ${JSON.stringify(value).slice(0, 20)} is refused`, async () => {
        const client = await connect();
        client.send({ type: 'connection_init', payload: { rejectMessage: value } });
        assert.deepEqual(await client.closed, { code: 4403, reason });
        assert.deepEqual(client.received, []);
      });
    }
  });

  describe('messages that close with 4400', () => {
    for (const [name, text] of [
      ['no JSON', 'hello'],
      ['an empty text', ''],
      ['a number', '7'],
      ['null', 'null'],
      ['an array', '[]'],
      ['an object without a type', '{}'],
      ['a type that is no string', '{"type":1}'],
      ['an unknown type', '{"type":"dance"}'],
      ['a type that is an inherited name', '{"type":"toString"}'],
      ['a verb of the older protocol', '{"type":"start","id":"1","payload":{"query":"{a}"}}'],
      ['a message of the server: next', '{"type":"next","id":"1","payload":{}}'],
      ['a message of the server: connection_ack', '{"type":"connection_ack"}'],
      ['a message of the server: error', '{"type":"error","id":"1","payload":[{"message":"a"}]}'],
      ['subscribe without id', '{"type":"subscribe","payload":{"query":"{ __typename }"}}'],
      ['subscribe with an empty id', '{"type":"subscribe","id":"","payload":{"query":"{a}"}}'],
      ['subscribe with a number as id', '{"type":"subscribe","id":1,"payload":{"query":"{a}"}}'],
      ['subscribe without payload', '{"type":"subscribe","id":"1"}'],
      ['subscribe without query', '{"type":"subscribe","id":"1","payload":{}}'],
      [
        'variables in an array',
        '{"type":"subscribe","id":"1","payload":{"query":"","variables":[1]}}',
      ],
      ['complete without id', '{"type":"complete"}'],
      ['ping with a text as payload', '{"type":"ping","payload":"now"}'],
      ['a member named __proto__', '{"type":"ping","payload":{"__proto__":1}}'],
      ['65 levels', `{"type":"ping","payload":{"a":${'['.repeat(65)}${']'.repeat(65)}}}`],
    ] as const) {
      test(name, async () => {
        const client = await ready();
        client.sendText(text);
        const { code, reason } = await client.closed;
        assert.equal(code, 4400);
        assert.ok(reason.length > 0);
      });
    }

    test('bytes in a binary frame that are not UTF-8', async () => {
      const client = await ready();
      client.sendBinary(Buffer.from([0x7b, 0xff, 0x7d]));
      assert.equal((await client.closed).code, 4400);
    });
  });

  for (const [length, isRepeated] of [
    [4_062, true],
    [4_063, false],
  ] as const) {
    const what = isRepeated ? 'comes back' : 'does not come back';
    test(`what a ping carries ${what} where it has ${length} characters`, async () => {
      const client = await ready();
      const payload = { p: 'x'.repeat(length) };
      const pong = await client.ask({ type: 'ping', payload });
      assert.deepEqual(pong, isRepeated ? { type: 'pong', payload } : { type: 'pong' });
    });
  }

  for (const payload of [null, '', []]) {
    test(`what a ping carries does not come back where it is ${JSON.stringify(payload)}`, async () => {
      const client = await ready();
      assert.deepEqual(await client.ask({ type: 'ping', payload }), { type: 'pong' });
    });
  }

  test('a pong that nobody asked for is ignored', async () => {
    const client = await ready();
    client.send({ type: 'pong', payload: { n: 1 } });
    await client.settle();
  });

  test('comments of one moment come whole and in order, long among short ones', async () => {
    const clients = [await ready(), await ready()];
    for (const client of clients) {
      client.send(subscribe('s', subscription));
      await client.settle();
    }
    // Short ones fill more than one write; the longest one is sent without a copy.
    const lengths = [1, 500, 3_000, 2, ...Array<number>(40).fill(700), 20_000, 3, 2_100, 4];
    const contents = lengths.map((length, index) => `${index} ${'x'.repeat(length)}`);
    for (const content of contents) endpoint().comment(content);
    for (const client of clients) {
      for (const content of contents) {
        const payload = { data: { commentAdded: { content } } };
        assert.deepEqual(await client.next(), { id: 's', type: 'next', payload }, content);
      }
      client.send({ id: 's', type: 'complete' });
      await client.settle();
      await client.close();
    }
  });
});

test('a fault of the service while it decodes a message is not taken for an invalid message', () => {
  const payload = {
    get query(): string {
      throw new TypeError('a fault');
    },
  };
  for (const { decode } of [newerProtocol, olderProtocol]) {
    assert.throws(() => decode({ id: '1', type: 'subscribe', payload }), TypeError);
  }
});

describe('a clean stop', { concurrency: 4 }, () => {
  test('says 1001 to everybody', async (t) => {
    const endpoint = await startEndpoint(t);
    const clients = [
      await connectByHand(endpoint.port),
      await connectReady(endpoint.port),
      await connectReady(endpoint.port, { protocols: [] }),
    ];
    clients[1]?.send(subscribe('s', subscription));
    const stopped = endpoint.stop();
    for (const [at, client] of clients.entries())
      assert.equal((await client.closed).code, 1001, `client ${at}`);
    await stopped;
    assert.deepEqual(endpoint.subscriptions.count(), { groups: 0, subscribers: 0 });
  });

  test('does not wait for those who do not answer', async (t) => {
    const endpoint = await startEndpoint(t);
    const client = await connectReady(endpoint.port);
    client.socket.pause();
    const began = performance.now();
    await endpoint.stop();
    assertWithin(4_000, performance.now() - began);
    client.socket.terminate();
  });

  test('lets nobody in any more', async (t) => {
    const { port, sockets } = await startEndpoint(t);
    await sockets.close();
    assert.equal((await askUpgrade(port, upgradeLines())).status, 503);
  });
});
