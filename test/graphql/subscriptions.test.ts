/** `commentAdded`: one result for each comment, in order, made once for each group. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Engine, Subscription } from '../../dist/graphql/engine.js';
import { decodeRequest } from '../../dist/graphql/http/messages.js';
import { ConnectionMemory } from '../../dist/memory-pool.js';
import { gate } from '../support/http-kit.ts';
import { type GraphqlEndpoint, startEndpoint } from '../support/graphql-endpoint.ts';
import { startServer } from '../support/server.ts';
import { askEvents } from '../support/sse-client.ts';
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
  await until(
    'all subscribers',
    () => endpoint.subscriptions.count().subscribers >= subscribers + count,
  );
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
      const position = (): number => events.position;
      const wrapped = { next: () => events.next(), return: close, ahead: () => [], position: 0 };
      Object.defineProperty(wrapped, 'position', { get: position });
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

test('other documents, operation names and variables are other groups', async (t) => {
  const { counts, wrap } = counting();
  const endpoint = await startEndpoint(t, { wrap });
  const client = await listen(endpoint);
  const named = 'subscription A { commentAdded { id } } subscription B { commentAdded { id } }';
  const ofPost = 'subscription ($p: String) { commentAdded(postId: $p) { id } }';
  const others = [
    [named, { operationName: 'A' }],
    [named, { operationName: 'B' }],
    [ofPost, { variables: { p: endpoint.postId } }],
    [ofPost, { variables: {} }],
    [ofPost, {}],
  ] as const;
  for (const [at, [text, more]] of others.entries()) client.send(subscribe(`o${at}`, text, more));
  await client.settle();
  assert.deepEqual(endpoint.subscriptions.count(), { groups: 5, subscribers: 6 });
  assert.equal(counts.opened, 5);
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

test('a source that opens after its last member left is ended at once', async (t) => {
  const late = gate();
  const { counts, wrap } = counting((real) => late.opened.then(real));
  const endpoint = await startEndpoint(t, { wrap });
  const client = await listen(endpoint);
  client.send({ id: '0', type: 'complete' });
  await client.settle();
  late.open();
  await until('one closed source', () => counts.closed === 1);
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

test('more members than one turn can serve all get the events, in order', async (t) => {
  const endpoint = await startEndpoint(t);
  const clients = [];
  for (let count = 0; count < 5; count += 1) clients.push(await listen(endpoint, 100));
  const contents = ['one', 'two', 'three'];
  for (const content of contents) endpoint.comment(content);
  for (const [at, client] of clients.entries()) {
    const found = new Map<string | undefined, unknown[]>();
    for (let count = 0; count < 300; count += 1) {
      const { id, payload } = await client.next();
      found.set(id, [...(found.get(id) ?? []), payload]);
    }
    assert.equal(found.size, 100, `client ${at}`);
    for (const payloads of found.values()) assert.deepEqual(payloads, contents.map(data));
  }
});

test('a source that ends completes its members', async (t) => {
  const { wrap } = counting(async (real) => {
    const { events, toJson } = await real();
    await events.return?.();
    return { events, toJson };
  });
  const endpoint = await startEndpoint(t, { wrap });
  const client = await connectReady(endpoint.port);
  assert.deepEqual(await client.ask(subscribe('0', query)), { id: '0', type: 'complete' });
  assert.deepEqual(endpoint.subscriptions.count(), none);
});

for (const [what, refused, code] of [
  [
    'whose variable is missing',
    '($x: Boolean!) { commentAdded { id @skip(if: $x) } }',
    'BAD_USER_INPUT',
  ],
  ['of nothing', '{ commentAdded @skip(if: true) { id } }', 'GRAPHQL_VALIDATION_FAILED'],
  [
    'of nothing by a fragment and a variable',
    '($x: Boolean = false) { ...f @include(if: $x) } fragment f on Subscription { commentAdded { id } }',
    'GRAPHQL_VALIDATION_FAILED',
  ],
  [
    'of nothing within a fragment',
    '{ ...f } fragment f on Subscription { ... { commentAdded @skip(if: true) { id } } }',
    'GRAPHQL_VALIDATION_FAILED',
  ],
  [
    'of two root fields',
    '{ a: commentAdded { id } b: commentAdded { id } }',
    'GRAPHQL_VALIDATION_FAILED',
  ],
] as const) {
  test(`a subscription ${what} is refused to each member, and leaves nothing behind`, async (t) => {
    const endpoint = await startEndpoint(t);
    const client = await connectReady(endpoint.port);
    for (const id of ['a', 'b']) client.send(subscribe(id, `subscription ${refused}`));
    for (const id of ['a', 'b']) {
      const message = await client.next();
      assert.deepEqual([message.id, message.type], [id, 'error'], id);
      assert.match(JSON.stringify(message.payload), new RegExp(code), id);
    }
    assert.deepEqual(endpoint.subscriptions.count(), none);
    assert.deepEqual(endpoint.logged, []);
  });
}

test('events that come faster than they are taken end the group as overloaded', async (t) => {
  const endpoint = await startEndpoint(t);
  const client = await listen(endpoint);
  // What may wait for a group, and more.
  for (let count = 0; count < 1_100; count += 1) endpoint.comment('x');
  assert.equal((await client.closed).code, 1013);
  assert.deepEqual([endpoint.logged, endpoint.dropped], [[], ['overflow']]);
});

test('what a group keeps is counted, and refused where its connection has less left', async (t) => {
  const endpoint = await startEndpoint(t, { env: { REQUEST_MEMORY_BYTES_MAX: '1048576' } });
  const others = endpoint.pool.open();
  others.set(endpoint.pool.bytesMax);
  // What other requests hold does not matter.
  const small = await askEvents(endpoint, 'subscription { commentAdded { id } }');
  assert.equal(small.response.statusCode, 200);
  others.release();
  const fields = (count: number): string =>
    Array.from({ length: count }, (_, at) => `f${at}: id`).join(' ');
  const long = `subscription { commentAdded { ${fields(19)} } }`;
  assert.equal((await askEvents(endpoint, long)).response.statusCode, 200);
  assert.ok(endpoint.pool.bytes > 5_000 && endpoint.pool.bytes < 16_384, `${endpoint.pool.bytes}`);
  const longer = `subscription { commentAdded { ${fields(45)} } }`;
  assert.equal((await askEvents(endpoint, longer)).response.statusCode, 503);
  await endpoint.stop();
  assert.equal(endpoint.pool.bytes, 0);
});

test('of a long postId nothing is kept, so that a socket holds little, however much it sent', async (t) => {
  const endpoint = await startEndpoint(t);
  const client = await connectReady(endpoint.port);
  const ofPost = 'subscription ($p: String) { commentAdded(postId: $p) { id } }';
  for (let count = 0; count < 76; count += 1) {
    const variables = { p: `${count}${'x'.repeat(64_000)}` };
    client.send({ id: `${count}`, type: 'subscribe', payload: { query: ofPost, variables } });
  }
  await until('76 groups', () => endpoint.subscriptions.count().groups === 76);
  assert.ok(endpoint.pool.bytes < 1_000_000, `${endpoint.pool.bytes}`);
  const reservation = endpoint.pool.open();
  assert.ok(reservation.grow(endpoint.pool.bytesMax / 2));
  reservation.release();
  // R38: they name nothing, and nothing comes; the socket and its other operations go on.
  endpoint.comment('x');
  const { type } = await client.ask({
    id: 'q',
    type: 'subscribe',
    payload: { query: '{ a: __typename }' },
  });
  assert.equal(type, 'next');
  await client.close();
});

test('1,000 different subscriptions are open at most; who joins one of them is no further one', async (t) => {
  const { port } = await startServer(t);
  const toQuery = (at: number): string => `subscription { a${at}: commentAdded { id } }`;
  for (let socket = 0; socket < 10; socket += 1) {
    const client = await connectReady(port);
    for (let at = 0; at < 100; at += 1) client.send(subscribe(`${at}`, toQuery(socket * 100 + at)));
    await client.settle();
  }
  const last = await connectReady(port);
  const refusal = await last.ask(subscribe('new', toQuery(1_000)));
  assert.deepEqual([refusal.type, refusal.id], ['error', 'new']);
  last.send(subscribe('old', toQuery(999)));
  await last.settle();
});

const withVariables = `subscription ($a: String, $b: Boolean = true) {
  commentAdded(postId: $a) { id content @include(if: $b) } }`;
for (const [given, bytes] of [
  [{}, 0],
  [{ a: 'x'.repeat(30) }, 139],
  [{ a: 'x'.repeat(30), b: true }, 224],
  [{ a: 'x'.repeat(30), b: true, undeclared: 1 }, 224],
] as const) {
  const names = Object.keys(given).join(', ') || 'none';
  test(`of the variables of a subscription, ${names}, its connection holds ${bytes} bytes`, async (t) => {
    const { engine, subscriptions, pool } = await startEndpoint(t);
    const joined = (variables: object): number => {
      const memory = new ConnectionMemory(pool);
      const subscriber = { memory, next: () => true, taken: () => undefined, end: () => undefined };
      const operation = engine.prepare(decodeRequest({ query: withVariables, variables }), 'r');
      const leave = subscriptions.join(operation, subscriber);
      const { bytes: held } = memory;
      leave();
      return held - memory.bytes;
    };
    assert.equal(joined(given) - joined({}), bytes);
  });
}
