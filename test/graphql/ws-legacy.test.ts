/** The older protocol, case by case, over real sockets. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { useEndpoint } from '../support/graphql-endpoint.js';
import {
  connectByHand,
  connectReady,
  type HandClient,
  type Message,
} from '../support/ws-clients.js';

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
      /** The next message that is no keep-alive. */
      const next = async (client: HandClient): Promise<Message> => {
        for (;;) {
          const message = await client.next();
          if (message.type !== 'ka') return message;
        }
      };
      /** Resolves once what was sent before has been dealt with. */
      const settle = async (client: HandClient): Promise<void> => {
        client.send({ type: 'ping', payload: { settled: true } });
        assert.deepEqual(await next(client), { type: 'pong', payload: { settled: true } });
      };

      test('the response names the sub-protocol where one was asked for', async () => {
        const client = await connect();
        assert.equal(client.socket.protocol, protocols[0] ?? '');
        await client.close();
      });

      test('start, data, complete', async () => {
        const client = await ready();
        client.send(start('1', typename));
        assert.deepEqual(await next(client), {
          type: 'data',
          id: '1',
          payload: { data: { __typename: 'Query' } },
        });
        assert.deepEqual(await next(client), { type: 'complete', id: '1' });
        await client.close();
      });

      test('a subscription gets each event as data', async () => {
        const client = await ready();
        client.send(start('s', subscription));
        await settle(client);
        for (const content of ['one', 'two', 'é'.repeat(3_000)]) {
          endpoint().comment(content);
          const payload = { data: { commentAdded: { content } } };
          assert.deepEqual(await next(client), { type: 'data', id: 's', payload });
        }
        await client.close();
      });

      test('stop is confirmed by complete, and nothing comes after it', async () => {
        const client = await ready();
        client.send(start('s', subscription));
        client.send({ type: 'stop', id: 's' });
        assert.deepEqual(await next(client), { type: 'complete', id: 's' });
        endpoint().comment('unheard');
        await settle(client);
        await client.close();
      });

      test('stop of an unknown id is ignored', async () => {
        const client = await ready();
        client.send({ type: 'stop', id: 'nobody' });
        await settle(client);
        await client.close();
      });

      test('binary frames are read as text', async () => {
        const client = await connect();
        client.sendBinary('{"type":"connection_init","payload":{}}');
        assert.deepEqual(await next(client), { type: 'connection_ack' });
        client.sendBinary(JSON.stringify(start('1', typename)));
        assert.equal((await next(client)).type, 'data');
        await client.close();
      });

      test('an operation before the acknowledgement waits for it', async () => {
        const client = await connect();
        client.send(start('1', typename));
        client.send({ type: 'connection_init' });
        assert.deepEqual(await next(client), { type: 'connection_ack' });
        assert.equal((await next(client)).type, 'data');
        await client.close();
      });

      test('an operation in the newer words waits for connection_init too', async () => {
        const client = await connect();
        client.send({ id: '1', type: 'subscribe', payload: { query: typename } });
        client.send({ type: 'connection_init' });
        assert.deepEqual(await next(client), { type: 'connection_ack' });
        assert.equal((await next(client)).type, 'next');
        await client.close();
      });

      test('an operation stopped before the acknowledgement never runs', async () => {
        const client = await connect();
        client.send(start('1', typename));
        client.send({ id: '1', type: 'stop' });
        client.send({ type: 'connection_init' });
        client.send(start('2', typename));
        const types = [];
        for (let count = 0; count < 4; count += 1) types.push(await next(client));
        assert.deepEqual(
          types.map(({ id, type }) => [id, type]),
          [
            ['1', 'complete'],
            [undefined, 'connection_ack'],
            ['2', 'data'],
            ['2', 'complete'],
          ],
        );
        await client.close();
      });

      test('a second connection_init is acknowledged again', async () => {
        const client = await ready();
        client.send({ type: 'connection_init' });
        assert.deepEqual(await next(client), { type: 'connection_ack' });
        await client.close();
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
          assert.deepEqual(await next(client), expected);
          const { code, reason } = await client.closed;
          assert.equal(code, 1011);
          assert.equal(reason, message.slice(0, 61));
        });
      }

      test('connection_error of a refused init has no id where none was sent', async () => {
        const client = await connect();
        client.send({ type: 'connection_init', payload: { rejectMessage: 'no' } });
        const message = { type: 'connection_error', payload: { message: 'no' } };
        assert.deepEqual(await next(client), message);
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
          client.send(start('bad', query));
          const { type, id, payload } = await next(client);
          assert.deepEqual([type, id], ['error', 'bad']);
          const errors = [payload].flat() as { message: string }[];
          assert.ok(errors.every(({ message }) => message.length > 0));
          await settle(client);
          endpoint().comment('still here');
          assert.equal((await next(client)).id, 'good');
          await client.close();
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
          const { type, payload } = await next(client);
          assert.equal(type, 'connection_error');
          assert.equal(typeof (payload as { message: unknown }).message, 'string');
          await settle(client);
          await client.close();
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
          client.send(message);
          const { type, id } = await next(client);
          assert.deepEqual([type, id], ['error', '7']);
          await client.close();
        });
      }

      test('a start under an id in use takes the place of the one before', async () => {
        const client = await ready();
        client.send(start('s', subscription));
        client.send(start('s', 'subscription { commentAdded { postId } }'));
        await settle(client);
        endpoint().comment('once');
        const payload = { data: { commentAdded: { postId: endpoint().postId } } };
        assert.deepEqual(await next(client), { type: 'data', id: 's', payload });
        await settle(client);
        await client.close();
      });

      test('each operation is answered in the words that it was asked in', async () => {
        const client = await ready();
        client.send(start('old', subscription));
        client.send({ id: 'new', type: 'subscribe', payload: { query: subscription } });
        await settle(client);
        endpoint().comment('to both');
        const seen = [await next(client), await next(client)].map(
          ({ id, type }) => `${id} ${type}`,
        );
        assert.deepEqual(seen.toSorted(), ['new next', 'old data']);
        client.send({ id: 'new', type: 'complete' });
        client.send({ id: 'old', type: 'complete' });
        assert.deepEqual(await next(client), { type: 'complete', id: 'old' });
        await settle(client);
        await client.close();
      });

      test('an error of a newer verb has the newer form', async () => {
        const client = await ready();
        client.send({ id: 'new', type: 'subscribe', payload: { query: '{' } });
        const { type, payload } = await next(client);
        assert.equal(type, 'error');
        assert.ok(Array.isArray(payload));
        await client.close();
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
