/** The older protocol, case by case, over real sockets. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { useEndpoint } from '../support/graphql-endpoint.ts';
import { connectByHand, connectReady, type HandClient } from '../support/ws-clients.ts';

const subscription = 'subscription { commentAdded { content } }';
const typename = '{ __typename }';
const start = (id: string, query: string, more: object = {}): object => {
  return { id, type: 'start', payload: { query, ...more } };
};

const init = { type: 'connection_init' };
const stop = { type: 'stop', id: 's' };
const newer = { id: '1', type: 'subscribe', payload: { query: typename } };

const stopped = { type: 'start', id: 6, payload: { query: typename } };

type Dialogue = readonly [name: string, sent: readonly (object | string)[], due: string];
/** What is sent, and the types and ids of what comes back. */
const dialogues: readonly Dialogue[] = [
  ['start, data, complete', [init, start('1', typename)], 'connection_ack, data 1, complete 1'],
  ['stop of an unknown id is ignored', [init, { type: 'stop', id: 'a' }], 'connection_ack'],
  ['a start waits', [start('1', typename), init], 'connection_ack, data 1, complete 1'],
  ['a newer operation waits for it too', [newer, init], 'connection_ack, next 1, complete 1'],
  [
    'an operation stopped before the acknowledgement never runs',
    [start('1', typename), { id: '1', type: 'stop' }, init, start('2', typename)],
    'complete 1, connection_ack, data 2, complete 2',
  ],
  ['a second init is acknowledged again', [init, init], 'connection_ack, connection_ack'],
  [
    'an id is any text or number, and comes back as it was',
    [init, { ...newer, id: 5 }, { type: 'start', id: '', payload: { query: typename } }],
    'connection_ack, next 5, complete 5, data, complete',
  ],
  ['a stop of a number is confirmed as it came', [stopped, { type: 'stop', id: 6 }], 'complete 6'],
  ['stop is confirmed', [init, start('s', subscription), stop], 'connection_ack, complete s'],
  ['an init without anything', [{ ...init, payload: null }], 'connection_ack'],
  ...[
    { type: 'dance', id: '7' },
    { type: 'start', id: '7' },
    { type: 'start', id: '7', payload: {} },
    start('7', typename, { variables: 'a' }),
    start('7', typename, { operationName: 1 }),
    { type: 'subscribe', id: '7', payload: {} },
  ].map((bad) => {
    const name = `${JSON.stringify(bad)} is an error of its operation`;
    return [name, [init, bad], 'connection_ack, error 7'] as const;
  }),
  ...[
    'hello',
    '[1]',
    '{}',
    '{"type":"dance"}',
    '{"type":"start","payload":{"query":"{ a }"}}',
    '{"type":"stop"}',
    '{"type":"start","id":"1","__proto__":{}}',
  ].map((text): Dialogue => {
    return [`${text} is a connection_error`, [init, text], 'connection_ack, connection_error'];
  }),
];

describe('the older protocol', { concurrency: 2 }, () => {
  for (const [name, protocols] of [
    ['the sub-protocol graphql-ws', ['graphql-ws']],
    ['no sub-protocol', []],
  ] as const) {
    describe(`with ${name}`, { concurrency: 1 }, () => {
      const endpoint = useEndpoint();
      const connect = (): Promise<HandClient> => connectByHand(endpoint().port, { protocols });
      const ready = (): Promise<HandClient> => connectReady(endpoint().port, { protocols });

      for (const [what, sent, due] of dialogues) {
        test(what, async () => {
          const client = await connect();
          for (const message of sent)
            client.sendText(typeof message === 'string' ? message : JSON.stringify(message));
          const found = [];
          while (found.length < due.split(', ').length) {
            const { type, id = '', payload } = await client.next();
            found.push(`${type} ${id}`.trim());
            if (type.endsWith('error')) assert.match(JSON.stringify(payload), /"message":"./);
          }
          assert.equal(found.join(', '), due);
          endpoint().comment('unheard');
          // The socket is open, and says nothing more.
          await client.settle();
        });
      }

      test('a subscription gets each event as data', async () => {
        const client = await ready();
        client.send(start('s', subscription));
        await client.settle();
        for (const content of ['one', 'two', 'é'.repeat(3_000)]) {
          endpoint().comment(content);
          const payload = { data: { commentAdded: { content } } };
          assert.deepEqual(await client.next(), { type: 'data', id: 's', payload }, content);
        }
      });

      for (const [value, message] of [
        ['no entry', 'no entry'],
        [null, 'null'],
        ['é'.repeat(100), 'é'.repeat(100)],
      ] as const) {
        test(`rejectMessage ${String(value).slice(0, 9)}: connection_error, then 1011`, async () => {
          const client = await connect();
          // It has the id of the init, if that had one.
          const id = value === null ? {} : { id: 'i' };
          client.send({ type: 'connection_init', ...id, payload: { rejectMessage: value } });
          const expected = { type: 'connection_error', ...id, payload: { message } };
          assert.deepEqual(await client.next(), expected);
          assert.deepEqual(await client.closed, { code: 1011, reason: message.slice(0, 61) });
        });
      }

      test('connection_terminate closes with 1000', async () => {
        const client = await ready();
        client.send({ type: 'connection_terminate' });
        assert.equal((await client.closed).code, 1000);
      });

      test('an error answers its operation, in the form of its verb, and leaves the socket open', async () => {
        const client = await ready();
        client.send(start('good', subscription));
        for (const query of ['{', '{ nothing nowhere }']) {
          const { type, id, payload } = await client.ask(start('bad', query));
          assert.deepEqual([type, id], ['error', 'bad']);
          const { message, extensions } = payload as { message: unknown; extensions: object };
          assert.equal(typeof message, 'string');
          // One object: the others are inside it.
          assert.equal('errors' in extensions, query !== '{');
        }
        const { type, payload } = await client.ask({ ...newer, payload: { query: '{' } });
        assert.equal(type, 'error');
        assert.ok(Array.isArray(payload));
        await client.settle();
        endpoint().comment('still here');
        assert.equal((await client.next()).id, 'good');
      });

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
        const seen = [await client.next(), await client.next()];
        const found = seen.map(({ id, type }) => `${id} ${type}`);
        assert.deepEqual(found.toSorted(), ['new next', 'old data']);
        client.send({ id: 'new', type: 'complete' });
        const ended = { id: 'old', type: 'complete' };
        assert.deepEqual(await client.ask(ended), ended);
        await client.settle();
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
