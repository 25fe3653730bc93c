/** Bytes that are made and not sent yet: bounded for one answer or event, counted in one pool. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type GraphqlDoor, startDoor } from '../support/graphql-door.js';
import { askEvents, nextEvent } from '../support/sse-client.js';
import { connectByHand, connectReady, type HandClient } from '../support/ws-clients.js';

const protocols = ['graphql-transport-ws'];
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const short = 'subscription { commentAdded { id } }';
const long = `subscription { commentAdded { ${aliases('content')} } }`;

/** Ten times the same field. */
function aliases(field: string): string {
  return Array.from({ length: 10 }, (_, index) => `f${index}: ${field}`).join(' ');
}

function subscribe(id: string, query: string): object {
  return { id, type: 'subscribe', payload: { query } };
}

/** A socket whose subscription runs. */
async function listen(door: GraphqlDoor, query: string): Promise<HandClient> {
  const { members } = door.subscriptions.count();
  const client = await connectReady(door.port, { protocols });
  client.send(subscribe('s', query));
  while (door.subscriptions.count().members === members) await turn();
  return client;
}

async function assertNothingHeld(door: GraphqlDoor): Promise<void> {
  while (door.door.size + door.streams.size > 0 || door.pool.bytes > 0) await turn();
  assert.deepEqual(door.subscriptions.count(), { groups: 0, members: 0 });
}

test('an answer beyond ANSWER_BYTES_MAX refuses its operation, the socket stays', async (t) => {
  const door = await startDoor(t, { env: { ANSWER_BYTES_MAX: '200000' } });
  const client = await connectReady(door.port, { protocols });
  door.comment('x'.repeat(150_000));
  const ask = async (query: string): Promise<string> => {
    client.send(subscribe('q', query));
    const { type, payload } = await client.next();
    if (type === 'next') assert.equal((await client.next()).type, 'complete');
    return type === 'next' ? type : JSON.stringify(payload);
  };
  assert.equal(await ask('{ allPosts { comments { content } } }'), 'next');
  const twice = '{ allPosts { comments { a: content b: content } } }';
  assert.match(await ask(twice), /PAYLOAD_TOO_LARGE/);
  assert.equal(await ask('{ __typename }'), 'next');
  await client.close();
  await assertNothingHeld(door);
});

test('an event beyond it is an error of its subscription, which goes on', async (t) => {
  const door = await startDoor(t, { env: { ANSWER_BYTES_MAX: '200000' } });
  const clients = [await listen(door, long), await listen(door, short)];
  const reader = await askEvents(door, long);
  while (door.subscriptions.count().members < 3) await turn();
  assert.equal(await reader.next(), ':');
  door.comment('x'.repeat(30_000));
  door.comment('y');
  const told = [await clients[0]?.next(), await clients[0]?.next()];
  assert.match(JSON.stringify(told[0]?.payload), /PAYLOAD_TOO_LARGE/);
  assert.match(JSON.stringify(told[1]?.payload), /"f0":"y"/);
  for (let count = 0; count < 2; count += 1) {
    assert.match(JSON.stringify((await clients[1]?.next())?.payload), /"commentAdded":\{"id"/);
  }
  assert.match((await reader.next()) ?? '', /PAYLOAD_TOO_LARGE/);
  assert.notEqual(await reader.next(), nextEvent({}));
  reader.leave();
  for (const client of clients) await client.close();
  await assertNothingHeld(door);
});

test('large events are counted once while slow members take them, and given back', async (t) => {
  const door = await startDoor(t, { env: { WS_QUEUE_BYTES_MAX: '65536' } });
  const slow = [await listen(door, long), await listen(door, long), await listen(door, long)];
  for (const client of slow) client.socket.pause();
  const reader = await listen(door, short);
  const content = 'x'.repeat(1_000_000);
  door.comment(content);
  await reader.next();
  while (door.pool.bytes < 10_000_000) await turn();
  // What the groups keep comes on top of the one event.
  assert.ok(door.pool.bytes < 11_000_000, `${door.pool.bytes}`);
  // They are behind: the next event is not for them.
  door.comment('y');
  await reader.next();
  assert.deepEqual(door.subscriptions.count(), { groups: 1, members: 1 });
  for (const client of slow) client.socket.resume();
  for (const client of slow) assert.equal((await client.closed).code, 1013);
  await reader.close();
  await assertNothingHeld(door);
});

test('an operation that runs does not keep the message that it came with', async (t) => {
  const door = await startDoor(t);
  const client = await connectReady(door.port, { protocols });
  for (let count = 0; count < 50; count += 1) {
    const extensions = { filler: 'x'.repeat(200_000) };
    client.send({ id: `${count}`, type: 'subscribe', payload: { query: short, extensions } });
  }
  while (door.subscriptions.count().members < 50) await turn();
  assert.ok(door.pool.bytes < 100_000, `${door.pool.bytes}`);
  assert.ok(door.pool.bytes > 50 * 500, `${door.pool.bytes}`);
  await client.close();
  await assertNothingHeld(door);
});

test('ids count: they are kept as long as their operations run', async (t) => {
  const door = await startDoor(t);
  const client = await connectReady(door.port, { protocols });
  const id = 'i'.repeat(120_000);
  client.send(subscribe(id, short));
  client.send(subscribe(`${id}2`, short));
  const refused = await client.next();
  assert.deepEqual([refused.type, refused.id], ['error', `${id}2`]);
  door.comment('x');
  assert.equal((await client.next()).id, id);
  await client.close();
  await assertNothingHeld(door);
});

test('operations that wait for the acknowledgement are counted, and given back', async (t) => {
  const door = await startDoor(t);
  const client = await connectByHand(door.port);
  const query = `{ __typename } #${'x'.repeat(100_000)}`;
  for (const id of ['a', 'b', 'c']) client.send({ id, type: 'start', payload: { query } });
  while (door.pool.bytes < 300_000) await turn();
  client.send({ type: 'connection_init' });
  assert.equal((await client.next()).type, 'connection_ack');
  for (let count = 0; count < 6; count += 1) await client.next();
  assert.equal(door.pool.bytes, 0);
  await client.close();
  await assertNothingHeld(door);
});

test('of the variables of a subscription only those that it declares are kept', async (t) => {
  const { engine } = await startDoor(t);
  const query = 'subscription ($x: Boolean!) { commentAdded { id @include(if: $x) content } }';
  const prepared = engine.prepare({ query, variables: { x: true, y: 'long', __proto__: null } });
  assert.ok(prepared.kind === 'ready');
  assert.deepEqual(prepared.variables, { x: true });
});
