/** `commentAdded`: one result for each comment, in order, made once for each group. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Engine, Subscription } from '../../dist/graphql/engine.js';
import { type GraphqlEndpoint, startEndpoint } from '../support/graphql-endpoint.ts';
import { until } from '../support/until.ts';
import { connectReady, type HandClient, subscribe } from '../support/ws-clients.ts';

const query = 'subscription { commentAdded { content } }';
const none = { groups: 0, subscribers: 0 };
const data = (content: string): object => ({ data: { commentAdded: { content } } });

/** A socket with so many of the same subscription, `0` and so on, which run. */
async function listen(endpoint: GraphqlEndpoint, count = 1): Promise<HandClient> {
  const client = await connectReady(endpoint.port);
  const { subscribers } = endpoint.subscriptions.count();
  for (let id = 0; id < count; id += 1) client.send(subscribe(`${id}`, query));
  const isThere = () => endpoint.subscriptions.count().subscribers >= subscribers + count;
  await until('all subscribers', isThere);
  return client;
}

/** A wrapper that counts sources and results; `open` is what opens a source. */
function counting(open?: (real: () => Promise<Subscription>) => Promise<Subscription>) {
  const counts = { opened: 0, closed: 0, made: 0 };
  const wrap = (engine: Engine): Engine => ({
    ...engine,
    async subscribe(...args) {
      const real = (): Promise<Subscription> => engine.subscribe(...args);
      counts.opened += 1;
      const { events, toJson } = await (open?.(real) ?? real());
      const close = async (): ReturnType<NonNullable<Subscription['events']['return']>> => {
        counts.closed += 1;
        return (await events.return?.()) ?? { done: true, value: undefined };
      };
      const make: Subscription['toJson'] = (value) => {
        counts.made += 1;
        return toJson(value);
      };
      const wrapped = { next: () => events.next(), return: close };
      return { events: wrapped as Subscription['events'], toJson: make };
    },
  });
  return { counts, wrap };
}

test('an event is made once for all of a group, and who joins late gets those from then on', async (t) => {
  const { counts, wrap } = counting();
  const endpoint = await startEndpoint(t, { wrap });
  const first = await listen(endpoint, 2);
  endpoint.comment('one');
  for (const id of ['0', '1']) {
    assert.deepEqual(await first.next(), { id, type: 'next', payload: data('one') }, id);
  }
  const late = await listen(endpoint);
  endpoint.comment('two');
  assert.deepEqual((await late.next()).payload, data('two'));
  assert.deepEqual((await first.next()).payload, data('two'));
  assert.deepEqual(counts, { opened: 1, closed: 0, made: 2 });
});

test('a group ends its source with its last member, and the next one opens a new one', async (t) => {
  const { counts, wrap } = counting();
  const endpoint = await startEndpoint(t, { wrap });
  const client = await listen(endpoint, 2);
  client.send({ id: '0', type: 'complete' });
  client.send({ id: '0', type: 'complete' });
  await client.settle();
  assert.equal(counts.closed, 0);
  client.send({ id: '1', type: 'complete' });
  await client.settle();
  assert.deepEqual([counts.closed, endpoint.subscriptions.count()], [1, none]);
  await listen(endpoint);
  assert.deepEqual(counts, { opened: 2, closed: 1, made: 0 });
});

test('an event does not wait behind large events of many other groups', async (t) => {
  const lengths: number[] = [];
  const wrap = (engine: Engine): Engine => ({
    ...engine,
    async subscribe(...args) {
      const { events, toJson } = await engine.subscribe(...args);
      const make: Subscription['toJson'] = async (value) => {
        const json = await toJson(value);
        lengths.push(json.length);
        return json;
      };
      return { events, toJson: make };
    },
  });
  const endpoint = await startEndpoint(t, { wrap });
  const others = await connectReady(endpoint.port);
  const aliases = Array.from({ length: 30 }, (_, at) => `f${at}: content`).join(' ');
  for (let id = 0; id < 12; id += 1) {
    others.send(subscribe(`${id}`, `subscription { commentAdded { g${id}: id ${aliases} } }`));
  }
  await until('12 groups', () => endpoint.subscriptions.count().groups === 12);
  const client = await listen(endpoint);
  endpoint.comment('x'.repeat(76_000));
  await client.next();
  // One of the others was being made already.
  assert.ok(lengths.findIndex((length) => length < 100_000) <= 1, lengths.join());
});

test('a subscription that cannot be is refused to each member, and leaves nothing behind', async (t) => {
  const endpoint = await startEndpoint(t);
  const client = await connectReady(endpoint.port);
  const invalid = 'GRAPHQL_VALIDATION_FAILED';
  const fragment = 'fragment f on Subscription {';
  for (const [refused, code] of [
    ['($x: Boolean!) { commentAdded { id @skip(if: $x) } }', 'BAD_USER_INPUT'],
    ['{ commentAdded @skip(if: true) { id } }', invalid],
    [`($x: Boolean = false) { ...f @include(if: $x) } ${fragment} commentAdded { id } }`, invalid],
    [`{ ...f } ${fragment} ... { commentAdded @skip(if: true) { id } } }`, invalid],
    ['{ a: commentAdded { id } b: commentAdded { id } }', invalid],
  ] as const) {
    for (const id of ['a', 'b']) client.send(subscribe(id, `subscription ${refused}`));
    for (const id of ['a', 'b']) {
      const message = await client.next();
      assert.deepEqual([message.id, message.type], [id, 'error'], refused);
      assert.match(JSON.stringify(message.payload), new RegExp(code), refused);
    }
    assert.deepEqual([endpoint.subscriptions.count(), endpoint.logged], [none, []]);
  }
});

test('events that come faster than they are taken end the group as overloaded', async (t) => {
  const endpoint = await startEndpoint(t);
  const client = await listen(endpoint);
  // What may wait for a group, and more.
  for (let count = 0; count < 1_100; count += 1) endpoint.comment('x');
  assert.equal((await client.closed).code, 1013);
  assert.deepEqual([endpoint.logged, endpoint.dropped], [[], ['overflow']]);
});
