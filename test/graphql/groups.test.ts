/** Which subscriptions share a group, and how many groups one connection may open. */

import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { SharedEvent } from '../../dist/graphql/events/shared-event.js';
import { ConnectionMemory, MemoryPool } from '../../dist/memory-pool.js';
import { type GraphqlEndpoint, startEndpoint } from '../support/graphql-endpoint.ts';
import { times } from '../support/lists.ts';
import { made } from '../support/made.ts';
import { askEvents } from '../support/sse-client.ts';
import { connectReady, type HandClient, subscribe } from '../support/ws-clients.ts';

const ofPost = 'subscription ($p: String) { commentAdded(postId: $p) { content } }';
const toPost = (at: number): string => `00000000-0000-7000-8000-${`${at}`.padStart(12, '0')}`;

async function connect(t: TestContext, endpoint: GraphqlEndpoint): Promise<HandClient> {
  const client = await connectReady(endpoint.port);
  t.after(() => client.socket.terminate());
  return client;
}

test('a long event counts for each connection, and once for the pool, until all have taken it', () => {
  const pool = new MemoryPool(1_000_000);
  const [first, second] = [new ConnectionMemory(pool), new ConnectionMemory(pool)];
  const facts = { id: 'a', place: 1, isSameIteration: false };
  const event = new SharedEvent(Buffer.alloc(10_000), pool, facts);
  const [take, takeToo] = [event.reserve(first), event.reserve(second)];
  const held = (): readonly number[] => [first.bytes, second.bytes, pool.bytes];
  assert.deepEqual(held(), [10_000, 10_000, 10_000]);
  take();
  assert.deepEqual(held(), [0, 10_000, 10_000]);
  takeToo();
  assert.deepEqual(held(), [0, 0, 0]);
});

test('nobody joins once all are ended', async (t) => {
  const endpoint = await startEndpoint(t);
  const client = await connect(t, endpoint);
  endpoint.subscriptions.close();
  const { type, payload } = await client.ask(subscribe('s', ofPost));
  assert.equal(type, 'error');
  assert.match(JSON.stringify(payload), /"code":"UNAVAILABLE"/);
});

describe('a group', () => {
  test('has the watchers of 2,000 posts, each of whom gets the comments of one', async (t) => {
    const endpoint = await startEndpoint(t);
    const clients: HandClient[] = [];
    for (const at of times(20)) {
      const client = await connect(t, endpoint);
      for (const id of times(100)) {
        const variables = { p: toPost(at * 100 + id) };
        client.send(subscribe(`${id}`, ofPost, { variables }));
      }
      await client.settle();
      clients.push(client);
    }
    const [first, second] = [made(clients[0]), made(clients[1])];
    first.send({ id: '99', type: 'complete' });
    first.send(subscribe('own', ofPost, { variables: { p: endpoint.postId.toUpperCase() } }));
    await first.settle();
    assert.deepEqual(endpoint.subscriptions.count(), { groups: 1, subscribers: 2_000 });
    endpoint.comment('to one');
    const payload = { data: { commentAdded: { content: 'to one' } } };
    assert.deepEqual(await first.next(), { id: 'own', type: 'next', payload });
    for (const client of clients) await client.settle();
    // Also where the id is in the document, in a fragment, or nothing is asked for.
    const literal = `subscription { ... { commentAdded(postId: "${toPost(1)}") { content } } }`;
    second.send({ id: '0', type: 'complete' });
    second.send(subscribe('literal', literal));
    second.send({ id: '1', type: 'complete' });
    second.send(subscribe('all', 'subscription { ... { commentAdded { content } } }'));
    await second.settle();
    assert.equal(endpoint.subscriptions.count().groups, 2);
  });

  test('has those alone that are equal but for their own arguments', async (t) => {
    const endpoint = await startEndpoint(t);
    const client = await connect(t, endpoint);
    const named = 'subscription A { commentAdded { id } } subscription B { commentAdded { id } }';
    const withIf = `subscription ($p: String, $x: Boolean!) {
      commentAdded(postId: $p) { id content @include(if: $x) } }`;
    // A variable that something else uses is no argument alone.
    const shared = `subscription S($p: String) { commentAdded(postId: $p) { id } }
      query Q($p: ID) { allPosts(after: $p) { id } }`;
    const asked = [
      [named, { operationName: 'A' }, 1],
      [named, { operationName: 'B' }, 2],
      [withIf, { variables: { p: toPost(1), x: true } }, 3],
      [withIf, { variables: { p: toPost(2), x: true } }, 3],
      [withIf, { variables: { p: toPost(2), x: false } }, 4],
      [shared, { operationName: 'S', variables: { p: toPost(1) } }, 5],
      [shared, { operationName: 'S', variables: { p: toPost(2) } }, 6],
    ] as const;
    for (const [at, [text, more, groups]] of asked.entries()) {
      client.send(subscribe(`${at}`, text, more));
      await client.settle();
      assert.equal(endpoint.subscriptions.count().groups, groups, `number ${at}`);
    }
  });

  test('keeps nothing of a postId, however long, which names nothing (R38)', async (t) => {
    const endpoint = await startEndpoint(t);
    const client = await connect(t, endpoint);
    for (const at of times(76)) {
      client.send(subscribe(`${at}`, ofPost, { variables: { p: `${at}${'x'.repeat(64_000)}` } }));
    }
    await client.settle();
    assert.deepEqual(endpoint.subscriptions.count(), { groups: 1, subscribers: 76 });
    assert.ok(endpoint.pool.bytes < 1_000_000, `${endpoint.pool.bytes}`);
    endpoint.comment('x');
    const { type } = await client.ask(subscribe('q', '{ a: __typename }'));
    assert.equal(type, 'next');
  });

  test('counts for its connection, and is refused where that has less left', async (t) => {
    const endpoint = await startEndpoint(t, { env: { REQUEST_MEMORY_BYTES_MAX: '1048576' } });
    const others = endpoint.pool.open();
    others.set(endpoint.pool.bytesMax);
    // What other requests hold does not matter.
    const small = await askEvents(endpoint, 'subscription { commentAdded { id } }');
    assert.equal(small.response.statusCode, 200);
    others.release();
    const toLong = (count: number): string => {
      const fields = times(count).map((at) => `f${at}: id`);
      return `subscription { commentAdded { ${fields.join(' ')} } }`;
    };
    assert.equal((await askEvents(endpoint, toLong(19))).response.statusCode, 200);
    const { bytes } = endpoint.pool;
    assert.ok(bytes > 5_000 && bytes < 16_384, `${bytes}`);
    assert.equal((await askEvents(endpoint, toLong(45))).response.statusCode, 503);
    assert.equal(endpoint.streams.size, 2);
    await endpoint.stop();
    assert.equal(endpoint.pool.bytes, 0);
  });
});

describe('of 64 groups', () => {
  const distinctMax = 64;
  let sockets = 0;
  /** Opens seven that no other socket has. Returns what was refused. */
  async function openMany(client: HandClient): Promise<number> {
    sockets += 1;
    for (const at of times(7)) {
      const query = `subscription { a${sockets}_${at}: commentAdded { content } }`;
      client.send(subscribe(`${at}`, query));
    }
    const payload = { all: sockets };
    client.send({ type: 'ping', payload });
    for (let refused = 0; ; refused += 1) {
      const { type } = await client.next();
      if (type === 'pong') return refused;
      assert.equal(type, 'error');
    }
  }

  test('eleven idle sockets leave some to others, over both transports', async (t) => {
    const endpoint = await startEndpoint(t, { distinctMax });
    const refused: number[] = [];
    for (const _ of times(11)) refused.push(await openMany(await connect(t, endpoint)));
    const { groups } = endpoint.subscriptions.count();
    assert.equal(refused[0], 0);
    assert.ok(groups < 60, `${groups} groups`);
    const client = await connect(t, endpoint);
    client.send(subscribe('new', 'subscription { own: commentAdded { content } }'));
    await client.settle();
    const stream = await askEvents(endpoint, 'subscription { ofPage: commentAdded { content } }');
    assert.equal(stream.response.statusCode, 200);
    assert.equal(endpoint.subscriptions.count().groups, groups + 2);
  });

  test('a connection that leaves some may open others', async (t) => {
    const endpoint = await startEndpoint(t, { distinctMax: 16 });
    const client = await connect(t, endpoint);
    const open = (id: string): void =>
      client.send(subscribe(id, `subscription { ${id}: commentAdded { id } }`));
    for (const id of ['a', 'b', 'c']) open(id);
    const refused = await client.next();
    assert.deepEqual([refused.type, refused.id], ['error', 'c']);
    assert.match(JSON.stringify(refused.payload), /opened by this connection/);
    client.send({ id: 'a', type: 'complete' });
    open('d');
    await client.settle();
    assert.equal(endpoint.subscriptions.count().groups, 2);
  });
});
