/** The older protocol, case by case, over real sockets. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { useEndpoint } from '../support/graphql-endpoint.js';
import { connectByHand, connectReady, type HandClient } from '../support/ws-clients.js';

const subscription = 'subscription { commentAdded { content } }';
const typename = '{ __typename }';
const start = (id: string, query: string, more: object = {}): object => {
  return { id, type: 'start', payload: { query, ...more } };
};

describe('the older protocol', { concurrency: 2 }, () => {
  for (const [name, protocols] of [
    ['the sub-protocol graphql-ws', ['graphql-ws']],
    ['no sub-protocol', []],
  ] as const) {
    describe(`with ${name}`, { concurrency: 1 }, () => {
      const endpoint = useEndpoint();
      const connect = (): Promise<HandClient> => connectByHand(endpoint().port, { protocols });
      const ready = (): Promise<HandClient> => connectReady(endpoint().port, { protocols });

      test('the response names the sub-protocol where one was asked for', async () => {
        const client = await connect();
        assert.equal(client.socket.protocol, protocols[0] ?? '');
      });

      test('start, data, complete', async () => {
        const client = await ready();
        assert.deepEqual(await client.ask(start('1', typename)), {
          type: 'data',
          id: '1',
          payload: { data: { __typename: 'Query' } },
        });
        assert.deepEqual(await client.next(), { type: 'complete', id: '1' });
      });

      test('a subscription gets each event as data', async () => {
        const client = await ready();
        client.send(start('s', subscription));
        await client.settle();
        for (const content of ['one', 'two', 'é'.repeat(3_000)]) {
          endpoint().comment(content);
          const payload = { data: { commentAdded: { content } } };
          assert.deepEqual(await client.next(), { type: 'data', id: 's', payload });
        }
      });

      test('stop is confirmed by complete, and nothing comes after it', async () => {
        const client = await ready();
        client.send(start('s', subscription));
        assert.deepEqual(await client.ask({ type: 'stop', id: 's' }), {
          type: 'complete',
          id: 's',
        });
        endpoint().comment('unheard');
        await client.settle();
      });

      test('stop of an unknown id is ignored', async () => {
        const client = await ready();
        client.send({ type: 'stop', id: 'nobody' });
        await client.settle();
      });

      test('binary frames are read as text', async () => {
        const client = await connect();
        client.sendBinary('{"type":"connection_init","payload":{}}');
        assert.deepEqual(await client.next(), { type: 'connection_ack' });
        client.sendBinary(JSON.stringify(start('1', typename)));
        assert.equal((await client.next()).type, 'data');
      });

      test('an operation before the acknowledgement waits for it', async () => {
        const client = await connect();
        client.send(start('1', typename));
        assert.deepEqual(await client.ask({ type: 'connection_init' }), { type: 'connection_ack' });
        assert.equal((await client.next()).type, 'data');
      });

      test('an operation in the newer words waits for connection_init too', async () => {
        const client = await connect();
        client.send({ id: '1', type: 'subscribe', payload: { query: typename } });
        assert.deepEqual(await client.ask({ type: 'connection_init' }), { type: 'connection_ack' });
        assert.equal((await client.next()).type, 'next');
      });

      test('an operation stopped before the acknowledgement never runs', async () => {
        const client = await connect();
        client.send(start('1', typename));
        client.send({ id: '1', type: 'stop' });
        client.send({ type: 'connection_init' });
        client.send(start('2', typename));
        const types = [];
        for (let count = 0; count < 4; count += 1) types.push(await client.next());
        assert.deepEqual(
          types.map(({ id, type }) => [id, type]),
          [
            ['1', 'complete'],
            [undefined, 'connection_ack'],
            ['2', 'data'],
            ['2', 'complete'],
          ],
        );
      });

      test('a second connection_init is acknowledged again', async () => {
        const client = await ready();
        assert.deepEqual(await client.ask({ type: 'connection_init' }), { type: 'connection_ack' });
      });

      for (const [value, message] of [
        ['no entry', 'no entry'],
        [null, 'null'],
        ['é'.repeat(100), 'é'.repeat(100)],
      ] as const) {
        test(`rejectMessage ${String(value).slice(0, 9)}: connection_error, then 1011`, async () => {
          const client = await connect();
          client.send({ type: 'connection_init', id: 'i', payload: { rejectMessage: value } });
          const expected = { type: 'connection_error', id: 'i', payload: { message } };
          assert.deepEqual(await client.next(), expected);
          const { code, reason } = await client.closed;
          assert.equal(code, 1011);
          assert.equal(reason, message.slice(0, 61));
        });
      }

      test('connection_error of a refused init has no id where none was sent', async () => {
        const client = await connect();
        client.send({ type: 'connection_init', payload: { rejectMessage: 'no' } });
        const message = { type: 'connection_error', payload: { message: 'no' } };
        assert.deepEqual(await client.next(), message);
        await client.closed;
      });

      test('connection_terminate closes with 1000', async () => {
        const client = await ready();
        client.send({ type: 'connection_terminate' });
        assert.equal((await client.closed).code, 1000);
      });

      for (const [fault, query] of [
        ['syntax', '{'],
        ['validation', '{ nothing }'],
      ] as const) {
        test(`a ${fault} error answers its operation and leaves the socket open`, async () => {
          const client = await ready();
          client.send(start('good', subscription));
          const { type, id, payload } = await client.ask(start('bad', query));
          assert.deepEqual([type, id], ['error', 'bad']);
          const errors = [payload].flat() as { message: string }[];
          assert.ok(errors.every(({ message }) => message.length > 0));
          await client.settle();
          endpoint().comment('still here');
          assert.equal((await client.next()).id, 'good');
        });
      }

      for (const [fault, text] of [
        ['no JSON', 'hello'],
        ['no object', '[1]'],
        ['no type', '{}'],
        ['an unknown type', '{"type":"dance"}'],
        ['a start without id', '{"type":"start","payload":{"query":"{ a }"}}'],
        ['a stop without id', '{"type":"stop"}'],
        ['a member named __proto__', '{"type":"start","id":"1","__proto__":{}}'],
      ] as const) {
        test(`${fault} is a connection_error and leaves the socket open`, async () => {
          const client = await ready();
          client.sendText(text);
          const { type, payload } = await client.next();
          assert.equal(type, 'connection_error');
          assert.equal(typeof (payload as { message: unknown }).message, 'string');
          await client.settle();
        });
      }

      for (const [fault, message] of [
        ['an unknown type', { type: 'dance', id: '7' }],
        ['a start without payload', { type: 'start', id: '7' }],
        ['a start without query', { type: 'start', id: '7', payload: {} }],
        ['variables that are no object', start('7', typename, { variables: 'a' })],
        ['an operationName that is no string', start('7', typename, { operationName: 1 })],
        ['a subscribe without query', { type: 'subscribe', id: '7', payload: {} }],
      ] as const) {
        test(`${fault} with an id is an error of that operation`, async () => {
          const client = await ready();
          const { type, id } = await client.ask(message);
          assert.deepEqual([type, id], ['error', '7']);
        });
      }

      test('a start under an id in use takes the place of the one before', async () => {
        const client = await ready();
        client.send(start('s', subscription));
        client.send(start('s', 'subscription { commentAdded { postId } }'));
        await client.settle();
        endpoint().comment('once');
        const payload = { data: { commentAdded: { postId: endpoint().postId } } };
        assert.deepEqual(await client.next(), { type: 'data', id: 's', payload });
        await client.settle();
      });

      test('each operation is answered in the words that it was asked in', async () => {
        const client = await ready();
        client.send(start('old', subscription));
        client.send({ id: 'new', type: 'subscribe', payload: { query: subscription } });
        await client.settle();
        endpoint().comment('to both');
        const seen = [await client.next(), await client.next()].map(
          ({ id, type }) => `${id} ${type}`,
        );
        assert.deepEqual(seen.toSorted(), ['new next', 'old data']);
        client.send({ id: 'new', type: 'complete' });
        assert.deepEqual(await client.ask({ id: 'old', type: 'complete' }), {
          type: 'complete',
          id: 'old',
        });
        await client.settle();
      });

      test('an error of a newer verb has the newer form', async () => {
        const client = await ready();
        const { type, payload } = await client.ask({
          id: 'new',
          type: 'subscribe',
          payload: { query: '{' },
        });
        assert.equal(type, 'error');
        assert.ok(Array.isArray(payload));
      });

      test('subscribe under an id in use closes with 4409', async () => {
        const client = await ready();
        const message = { id: 'new', type: 'subscribe', payload: { query: subscription } };
        client.send(message);
        client.send(message);
        assert.equal((await client.closed).code, 4409);
      });
    });
  }
});
