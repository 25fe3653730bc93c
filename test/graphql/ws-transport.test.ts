/** The newer protocol, case by case, over real sockets. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { olderProtocol, newerProtocol } from '../../dist/graphql/ws/protocols.js';
import { startEndpoint, useEndpoint } from '../support/graphql-endpoint.ts';
import { assertWithin } from '../support/pace.ts';
import { askUpgrade, subscribe, upgradeLines } from '../support/ws-clients.ts';
import { connectByHand, connectReady, type HandClient } from '../support/ws-clients.ts';

const subscription = 'subscription { commentAdded { content } }';

const init = { type: 'connection_init' };
const query = subscribe('1', '{ __typename }');
const running = subscribe('s', subscription);
const operation = (rest: string): string => `{"type":"subscribe",${rest}}`;

/** What is sent, and how the socket closes; a text is sent behind `connection_init`. */
const closing: readonly (readonly [what: string, readonly object[] | string, number, string?])[] = [
  ['an init that comes after an operation (R28)', [query, init], 4401, 'Unauthorized'],
  ['an init that comes twice', [init, init], 4429, 'Too many initialisation requests'],
  ...(
    [
      ['not today', 'not today'],
      ['', ''],
      [null, 'null'],
      [false, 'false'],
      [42, '42'],
      [{ a: 1 }, '{"a":1}'],
      ['é'.repeat(100), 'é'.repeat(61)],
      ['a' + '😀'.repeat(50), 'a' + '😀'.repeat(30)],
    ] as const
  ).map(([value, reason]) => {
    const sent = [{ ...init, payload: { rejectMessage: value } }];
    return [`rejectMessage ${JSON.stringify(value).slice(0, 20)}`, sent, 4403, reason] as const;
  }),
  ['an id in use', [running, running], 4409, 'Subscriber for s already exists'],
  ['a long id in use', [0, 1].map(() => subscribe('😀'.repeat(64), subscription)), 4409],
  ['no JSON', 'hello', 4400],
  ['an empty text', '', 4400],
  ['a number', '7', 4400],
  ['null', 'null', 4400],
  ['an array', '[]', 4400],
  ['an object without a type', '{}', 4400],
  ['a type that is no string', '{"type":1}', 4400],
  ['an unknown type', '{"type":"dance"}', 4400],
  ['a type that is an inherited name', '{"type":"toString"}', 4400],
  ['a verb of the older one', '{"type":"start","id":"1","payload":{"query":"{a}"}}', 4400],
  ['next, of the server', '{"type":"next","id":"1","payload":{}}', 4400],
  ['connection_ack, of the server', '{"type":"connection_ack"}', 4400],
  ['error, of the server', '{"type":"error","id":"1","payload":[{"message":"a"}]}', 4400],
  ['subscribe without id', operation('"payload":{"query":"{ __typename }"}'), 4400],
  ['subscribe with an empty id', operation('"id":"","payload":{"query":"{a}"}'), 4400],
  ['subscribe with a number as id', operation('"id":1,"payload":{"query":"{a}"}'), 4400],
  ['subscribe without payload', operation('"id":"1"'), 4400],
  ['subscribe without query', operation('"id":"1","payload":{}'), 4400],
  ['an array of variables', operation('"id":"1","payload":{"query":"","variables":[1]}'), 4400],
  ['complete without id', '{"type":"complete"}', 4400],
  ['ping with a text as payload', '{"type":"ping","payload":"now"}', 4400],
  ['a member named __proto__', '{"type":"ping","payload":{"__proto__":1}}', 4400],
  ['65 levels', `{"type":"ping","payload":{"a":${'['.repeat(65)}${']'.repeat(65)}}}`, 4400],
];

describe('graphql-transport-ws', () => {
  const endpoint = useEndpoint();
  const connect = (): Promise<HandClient> => connectByHand(endpoint().port);
  const ready = (): Promise<HandClient> => connectReady(endpoint().port);

  test('connection_init in a binary frame, with any payload, is acknowledged', async () => {
    const client = await connect();
    client.sendBinary('{"type":"connection_init","payload":{"a":[1,"b",null]}}');
    assert.deepEqual(await client.next(), { type: 'connection_ack' });
  });

  for (const [what, sent, code, reason] of closing) {
    test(`${what} closes with ${code}`, async () => {
      const client = await (typeof sent === 'string' || code === 4409 ? ready() : connect());
      if (typeof sent === 'string') client.sendText(sent);
      else for (const message of sent) client.send(message);
      const closed = await client.closed;
      assert.deepEqual(closed, { code, reason: reason ?? closed.reason });
      assert.ok(reason !== undefined || closed.reason !== '');
      const others = client.received.filter(({ type }) => type !== 'connection_ack');
      assert.deepEqual(others, []);
    });
  }

  test('bytes in a binary frame that are not UTF-8 close with 4400', async () => {
    const client = await ready();
    client.sendBinary(Buffer.from([0x7b, 0xff, 0x7d]));
    assert.equal((await client.closed).code, 4400);
  });

  test('what a ping carries comes back where it is short and no empty value', async () => {
    const client = await ready();
    const payloads = [4_062, 4_063].map((length) => ({ p: 'x'.repeat(length) }));
    for (const [at, payload] of [...payloads, null, '', []].entries()) {
      const pong = await client.ask({ type: 'ping', payload });
      assert.deepEqual(pong, at === 0 ? { type: 'pong', payload } : { type: 'pong' }, `${at}`);
    }
  });

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
    // Around the borders of the length of a frame (RFC 6455 §5.2).
    const empty = { id: 's', type: 'next', payload: { data: { commentAdded: { content: '' } } } };
    for (const bytes of [125, 126, 127, 65_535, 65_536, 65_537])
      contents.push('y'.repeat(bytes - JSON.stringify(empty).length));
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
    const [ready, older] = [await connectReady(endpoint.port), { protocols: [] }];
    ready.send(running);
    const others = [await connectByHand(endpoint.port), await connectReady(endpoint.port, older)];
    const clients = [ready, ...others];
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
