/** Bytes that are made and not sent yet: bounded for one response or event, counted in one pool. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type GraphqlEndpoint, startEndpoint } from '../support/graphql-endpoint.ts';
import { askEvents, nextEvent } from '../support/sse-client.ts';
import { connectByHand, connectReady, type HandClient, subscribe } from '../support/ws-clients.ts';
import { until } from '../support/until.ts';

const short = 'subscription { commentAdded { id } }';
const long = `subscription { commentAdded { ${aliases('content')} } }`;

/** Ten times the same field. */
function aliases(field: string): string {
  return Array.from({ length: 10 }, (_, index) => `f${index}: ${field}`).join(' ');
}

/** A socket whose subscription runs. */
async function listen(endpoint: GraphqlEndpoint, query: string): Promise<HandClient> {
  const { subscribers } = endpoint.subscriptions.count();
  const client = await connectReady(endpoint.port);
  client.send(subscribe('s', query));
  await until('the subscription', () => endpoint.subscriptions.count().subscribers !== subscribers);
  return client;
}

/** What the client is told next. */
const told = async (client: HandClient): Promise<string> =>
  JSON.stringify((await client.next()).payload);

async function assertNothingHeld(endpoint: GraphqlEndpoint): Promise<void> {
  const { pool, sockets, streams } = endpoint;
  await until('the end of all', () => sockets.size + streams.size + pool.bytes === 0);
  assert.deepEqual(endpoint.subscriptions.count(), { groups: 0, subscribers: 0 });
}

test('an event beyond it is an error of its subscription, which goes on', async (t) => {
  const endpoint = await startEndpoint(t, { env: { REQUEST_MEMORY_BYTES_MAX: '1048576' } });
  const clients = [await listen(endpoint, long), await listen(endpoint, short)] as const;
  const reader = await askEvents(endpoint, long);
  await until('three subscribers', () => endpoint.subscriptions.count().subscribers >= 3);
  assert.equal(await reader.next(), ':');
  endpoint.comment('x'.repeat(30_000));
  endpoint.comment('y');
  assert.match(await told(clients[0]), /PAYLOAD_TOO_LARGE/);
  assert.match(await told(clients[0]), /"f0":"y"/);
  for (const _ of [1, 2]) assert.match(await told(clients[1]), /"commentAdded":\{"id"/);
  assert.match((await reader.next()) ?? '', /PAYLOAD_TOO_LARGE/);
  assert.notEqual(await reader.next(), nextEvent({}));
  reader.leave();
  for (const client of clients) await client.close();
  await assertNothingHeld(endpoint);
});

test('large events are counted once while slow members take them, and given back', async (t) => {
  // The share of a client is 32 MiB of it, so that none is behind.
  const env = { REQUEST_MEMORY_BYTES_MAX: String(4 * 1024 ** 3) };
  const endpoint = await startEndpoint(t, { env });
  const slow: HandClient[] = [];
  for (let count = 0; count < 3; count += 1) slow.push(await listen(endpoint, long));
  for (const client of slow) client.socket.pause();
  // Gets each event after them.
  const reader = await listen(endpoint, long);
  // The operating system takes some of the first ones for each socket.
  for (let count = 0; count < 6; count += 1) {
    endpoint.comment('x'.repeat(400_000));
    await reader.next();
  }
  assert.ok(endpoint.pool.bytes >= 4_000_000, `${endpoint.pool.bytes}`);
  // What the groups keep comes on top of the events.
  assert.ok(endpoint.pool.bytes < 6 * 4_000_000 + 300_000, `${endpoint.pool.bytes}`);
  assert.deepEqual(endpoint.dropped, []);
  for (const client of slow) {
    client.socket.resume();
    for (let count = 0; count < 6; count += 1)
      assert.equal((await client.next()).type, 'next', `round ${count}`);
  }
  for (const client of [...slow, reader]) await client.close();
  await assertNothingHeld(endpoint);
});

test('an operation that runs does not keep the message that it came with', async (t) => {
  const endpoint = await startEndpoint(t);
  const client = await connectReady(endpoint.port);
  for (let count = 0; count < 50; count += 1) {
    const extensions = { filler: 'x'.repeat(50_000) };
    client.send({ id: `${count}`, type: 'subscribe', payload: { query: short, extensions } });
  }
  await until('50 subscribers', () => endpoint.subscriptions.count().subscribers >= 50);
  assert.ok(endpoint.pool.bytes < 100_000, `${endpoint.pool.bytes}`);
  assert.ok(endpoint.pool.bytes > 50 * 500, `${endpoint.pool.bytes}`);
  await client.close();
  await assertNothingHeld(endpoint);
});

test('an operation needs an id of at most 1,024 characters', async (t) => {
  const { port } = await startEndpoint(t);
  const start = (length: number, type: string) => {
    return { id: 'i'.repeat(length), type, payload: { query: '{ __typename }' } };
  };
  const older = await connectReady(port, { protocols: [] });
  for (const verb of ['start', 'subscribe'])
    assert.equal((await older.ask(start(1_025, verb))).type, 'connection_error', verb);
  assert.equal((await older.ask(start(1_024, 'start'))).id, 'i'.repeat(1_024));
  const newer = await connectReady(port);
  assert.equal((await newer.ask(start(1_024, 'subscribe'))).id, 'i'.repeat(1_024));
  newer.send(start(1_025, 'subscribe'));
  assert.equal((await newer.closed).code, 4400);
});

test('of an Authorization no more is stored than a token can have, and it stays invalid', async (t) => {
  const endpoint = await startEndpoint(t);
  const client = await connectByHand(endpoint.port);
  const token = 'x'.repeat(10_000);
  await client.ask({ type: 'connection_init', payload: { Authorization: `Bearer ${token}` } });
  const create = 'mutation { createPost(createPostInput: {title: "t", content: "c"}) }';
  await client.ask(subscribe('1', create));
  assert.deepEqual(endpoint.authorizations, [`Bearer ${token.slice(0, 4_097)}`]);
  await client.close();
});

test('a long result is counted until it is read, and given back', async (t) => {
  const endpoint = await startEndpoint(t, { env: { REQUEST_MEMORY_BYTES_MAX: '67108864' } });
  const client = await connectReady(endpoint.port);
  endpoint.comment('x'.repeat(1_000_000));
  client.socket.pause();
  // More than the machine takes on the way.
  const query = '{ allPosts { comments { a: content b: content c: content } } }';
  for (let id = 0; id < 9; id += 1) client.send(subscribe(`${id}`, query));
  await until('3,000,000 bytes of the pool', () => endpoint.pool.bytes >= 3_000_000);
  client.socket.resume();
  for (let count = 0; count < 18; count += 1) await client.next();
  await client.close();
  await assertNothingHeld(endpoint);
});

test('a long event waits while clients hold more than may be in memory; short ones do not', async (t) => {
  const endpoint = await startEndpoint(t);
  const client = await listen(endpoint, long);
  const other = await listen(endpoint, short);
  const held = endpoint.pool.open();
  held.set(endpoint.pool.bytesMax + 1);
  const seen: string[] = [];
  const event = told(client).finally(() => seen.push('long'));
  for (const content of ['x'.repeat(30_000), 'y', 'z']) {
    endpoint.comment(content);
    await other.next();
    seen.push('short');
  }
  held.release();
  assert.match(await event, /"f9":"xxx/);
  assert.deepEqual(seen, ['short', 'short', 'short', 'long']);
  for (const content of ['y', 'z'])
    assert.match(await told(client), new RegExp(`"f9":"${content}"`));
  assert.deepEqual(endpoint.dropped, []);
  await client.close();
  await other.close();
  await assertNothingHeld(endpoint);
});
