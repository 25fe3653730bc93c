/** Bounds of sockets and events that are constants, each crossed by a literal. */

import assert from 'node:assert/strict';
import diagnostics from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { AppError } from '../../dist/errors.js';
import { bytesOfDocument } from '../../dist/graphql/documents/documents.js';
import type { Engine } from '../../dist/graphql/engine.js';
import { createEventLine } from '../../dist/graphql/events/event-line.js';
import { SharedEvent } from '../../dist/graphql/events/shared-event.js';
import type { Subscriber } from '../../dist/graphql/events/subscriber.js';
import { ClientSocket } from '../../dist/graphql/ws/client-socket.js';
import { ConnectionMemory, MemoryPool } from '../../dist/memory-pool.js';
import { type GraphqlEndpoint, startEndpoint } from '../support/graphql-endpoint.ts';
import { times } from '../support/lists.ts';
import { testAtLength } from '../support/long.ts';
import { made } from '../support/made.ts';
import { until } from '../support/until.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

const subscription = 'subscription { commentAdded { content } }';

async function manyTurns(): Promise<void> {
  for (let count = 0; count < 200; count += 1) await turn();
}

/** Results of 50 MB, which no kernel takes on their way, given when they are called for. */
function startHeld(t: TestContext, now: () => number) {
  const held: (() => void)[] = [];
  const big = JSON.stringify({ data: { big: 'x'.repeat(5_000_000) } });
  const execute: Engine['execute'] = async () => {
    await new Promise<void>((resolve) => void held.push(resolve));
    return { json: big, codes: [], isRepeatable: false };
  };
  const wrap = (engine: Engine): Engine => ({ ...engine, execute });
  return { held, endpoint: startEndpoint(t, { wrap, now }) };
}

test('while a client does not read, its messages are not read', async (t) => {
  const clock = { now: 7_000 };
  let accepted: Socket | undefined;
  const note = (message: unknown): void => void ({ socket: accepted } = message as never);
  diagnostics.subscribe('net.server.socket', note);
  t.after(() => diagnostics.unsubscribe('net.server.socket', note));
  const { held, endpoint } = startHeld(t, () => clock.now);
  const client = await connectReady(endpoint);
  for (const id of times(10)) client.send(subscribe(`${id}`, '{ __typename }'));
  await until('ten operations', () => held.length === 10);
  client.socket.pause();
  for (const finish of held) finish();
  await until('a backlog', () => (accepted?.writableLength ?? 0) > 10_000_000);
  // Read in the same second they would close the socket: 200 messages are allowed in it. What came
  // in one packet with the first of them is read all the same, a message in each iteration.
  accepted?.once('pause', () => void (clock.now = 9_000));
  for (const _ of times(195)) client.send({ type: 'ping' });
  await until('the pause', () => accepted?.isPaused() === true);
  client.socket.resume();
  const types = new Map<string, number>();
  while ((types.get('complete') ?? 0) + (types.get('pong') ?? 0) < 205) {
    const { type } = await client.next();
    types.set(type, (types.get(type) ?? 0) + 1);
  }
  client.socket.terminate();
});

test('at a stop sockets and event streams have a second and a half', async (t) => {
  const endpoint = await startEndpoint(t);
  await connectReady(endpoint.port);
  const timers = t.mock.method(globalThis, 'setTimeout');
  await endpoint.stop();
  const delays = timers.mock.calls.map(({ arguments: [, milliseconds] }) => milliseconds);
  assert.equal(delays.filter((delay) => delay === 1_500).length, 2, delays.join());
});

test('short events of an iteration are written together, up to 16 KiB', () => {
  const socket = {
    writableLength: 0,
    writableCorked: 0,
    cork: () => void (socket.writableCorked += 1),
    uncork: () => void (socket.writableCorked = 0),
    write: (piece: Buffer) => void (socket.writableLength += piece.length),
  };
  const pool = new MemoryPool(1_000_000);
  const accepted = { webSocket: { readyState: 1, OPEN: 1 }, memory: new ConnectionMemory(pool) };
  const client = new ClientSocket(accepted as never, socket as never, () => 1_000_000);
  const facts = { id: '1', position: 1, isSameIteration: true, isCurrent: () => true };
  // A frame of 1,024 bytes, with 4 bytes of its head and the brace.
  const event = new SharedEvent(Buffer.alloc(1_019), pool, facts);
  for (const at of times(17)) {
    assert.equal(socket.writableCorked, at === 0 ? 0 : 1, `before event ${at}`);
    assert.equal(client.deliver(event, ''), true);
  }
  assert.deepEqual([socket.writableLength, socket.writableCorked], [17 * 1_024, 0]);
});

/** Subscribers that note in which iteration they get an event; the first of them takes long. */
async function startMany(t: TestContext, count: number) {
  const endpoint = await startEndpoint(t);
  const operation = endpoint.engine.prepare({ query: subscription }, 'r-1');
  let iteration = 0;
  const gotAt: number[] = [];
  const toSubscriber = (): Subscriber => ({
    memory: new ConnectionMemory(endpoint.pool),
    next: () => {
      const end = performance.now() + (gotAt.length % 64 === 0 ? 6 : 0);
      while (performance.now() < end);
      return gotAt.push(iteration) > 0;
    },
    taken: () => undefined,
    end: () => undefined,
  });
  for (const _ of times(count)) endpoint.subscriptions.join(operation, toSubscriber());
  const next = (): void => {
    iteration += 1;
    if (gotAt.length < count) setImmediate(next);
  };
  setImmediate(next);
  return { endpoint, gotAt };
}

test('an event is given to 64 subscribers in a turn, which may be the last of its iteration', async (t) => {
  const { endpoint, gotAt } = await startMany(t, 192);
  endpoint.comment('to all');
  await until('all have the event', () => gotAt.length === 192);
  assert.deepEqual([gotAt[0], gotAt[64], gotAt[128]], [gotAt[63], gotAt[127], gotAt[191]]);
  assert.equal(new Set(gotAt).size, 3);
});

async function firstComment({ store, postId }: GraphqlEndpoint): Promise<string> {
  const { records } = await store.comments.ofPost(postId).read({ limit: 1 });
  return made(records[0]).id;
}

test('sixteen subscribers that resume read at the same time', async (t) => {
  const endpoint = await startEndpoint(t);
  const first = await firstComment(endpoint);
  const reading: (() => void)[] = [];
  const { after } = endpoint.store.comments;
  t.mock.method(endpoint.store.comments, 'after', async (...args: Parameters<typeof after>) => {
    await new Promise<void>((resolve) => void reading.push(resolve));
    return after(...args);
  });
  const query = `subscription { commentAdded(after: "${first}") { content } }`;
  const client = await connectReady(endpoint.port);
  for (const id of times(20)) client.send(subscribe(`${id}`, query));
  await until('sixteen that read', () => reading.length >= 16);
  await client.settle();
  await manyTurns();
  assert.equal(reading.length, 16);
  for (const read of reading.slice(0, 16)) read();
  await until('the other four', () => reading.length === 20);
  for (const read of reading) read();
});

test('an event whose post cannot be read waits for the store', async (t) => {
  const endpoint = await startEndpoint(t, { env: { REQUIRE_AUTH: 'owners' } });
  const { store, postId, subscriptions } = endpoint;
  await store.posts.update(postId, { status: 'PUBLISHED' });
  const client = await connectReady(endpoint.port);
  client.send(subscribe('1', subscription));
  await until('a subscriber', () => subscriptions.count().subscribers === 1);
  const find = t.mock.method(store.posts, 'find');
  find.mock.mockImplementationOnce(() => {
    throw new AppError('unavailable', 'away');
  });
  endpoint.comment('late');
  const { type, payload } = await client.next();
  assert.deepEqual([type, payload], ['next', { data: { commentAdded: { content: 'late' } } }]);
});

test('an event of 65,536 characters does not wait for memory, a longer one does', async () => {
  const pool = { isOver: true };
  const line = createEventLine(pool);
  const done: number[] = [];
  const make = (length: number) => line(length, async () => void done.push(length));
  const long = make(65_537);
  await make(65_536);
  assert.deepEqual(done, [65_536]);
  pool.isOver = false;
  // The pause between looks at the memory keeps no process awake.
  await until('the long event', () => done.length === 2);
  await long;
  assert.deepEqual(done, [65_536, 65_537]);
});

testAtLength('a long event waits for memory ten seconds, then it is made', async () => {
  let looks = 0;
  const pool = {
    get isOver() {
      looks += 1;
      return true;
    },
  };
  const startedAt = performance.now();
  let isMade = false;
  const making = createEventLine(pool)(65_537, async () => void (isMade = true));
  await until('the event', () => isMade, 60);
  await making;
  assert.equal(looks, 201);
  assert.ok(performance.now() - startedAt >= 9_900);
});

test('a message of 512 bytes is read at once, a longer one in a turn', async (t) => {
  let turns = 0;
  const wrap = (engine: Engine): Engine => {
    const run: Engine['scheduler']['run'] = (work) => {
      turns += 1;
      return engine.scheduler.run(work);
    };
    return { ...engine, scheduler: { ...engine.scheduler, run } };
  };
  const client = await connectReady(startEndpoint(t, { wrap }));
  for (const [length, expected] of [
    [512, 0],
    [513, 1],
  ] as const) {
    client.sendText('{"type":"ping"}'.padEnd(length));
    assert.deepEqual(await client.next(), { type: 'pong' });
    assert.equal(turns, expected, `${length} bytes`);
  }
});

test('a subscription counts its document, its variables twice, and 67 bytes for each', async (t) => {
  const { engine, subscriptions } = await startEndpoint(t);
  const query = `subscription ($a: Boolean!, $b: Boolean!) {
    commentAdded { id @include(if: $a) content @include(if: $b) } }`;
  const operation = engine.prepare({ query, variables: { a: true, b: false } }, 'r-1');
  const taken: number[] = [];
  const reservation = { grow: (bytes: number) => taken.push(bytes) > 0, release: () => undefined };
  const memory = { openLasting: () => reservation } as unknown as ConnectionMemory;
  const ignore = (): undefined => undefined;
  subscriptions.join(operation, { memory, next: () => true, taken: ignore, end: ignore })();
  const { length } = '{"a":true,"b":false}';
  assert.deepEqual(taken, [bytesOfDocument(operation.document) + 2 * length + 2 * 67]);
});

test('of a variable of a subscription 37 characters are kept', async (t) => {
  const { engine } = await startEndpoint(t);
  const query = 'subscription ($id: String) { commentAdded(postId: $id) { id } }';
  const keep = (length: number): unknown =>
    engine.prepare({ query, variables: { id: 'x'.repeat(length) } }, 'r-1').variables;
  assert.deepEqual([keep(36), keep(1_000)], [{ id: 'x'.repeat(36) }, { id: 'x'.repeat(37) }]);
});

test('an event counts 64 characters for each of its fields, beside its text', async (t) => {
  const endpoint = await startEndpoint(t);
  const client = await connectReady(endpoint.port);
  const fields = times(49).map((at) => `a${at}: content`);
  client.send(subscribe('1', `subscription { commentAdded { ${fields.join(' ')} } }`));
  await until('a subscriber', () => endpoint.subscriptions.count().subscribers === 1);
  const others = endpoint.pool.open();
  others.set(endpoint.pool.bytesMax + 1);
  // 50 times 1,310 characters are 65,500.
  endpoint.comment('x'.repeat(1_246));
  assert.equal((await client.next()).type, 'next');
  endpoint.comment('x'.repeat(1_247));
  await manyTurns();
  await client.settle();
  others.release();
  assert.equal((await client.next()).type, 'next');
});

test('a frame in 64 packets is read, one more closes with 1008', async (t) => {
  const client = await connectReady(startEndpoint(t));
  const { _socket: raw } = client.socket as unknown as { readonly _socket: Socket };
  raw.setNoDelay(true);
  /** Each byte is a packet: this process has read it after an iteration. */
  const sendFrame = async (bytes: number): Promise<void> => {
    // With a mask that changes nothing. The head is gone when the first byte comes.
    raw.write(Buffer.from([0x81, 0xfe, bytes >> 8, bytes & 0xff, 0, 0, 0, 0]));
    for (const byte of '{"type":"ping"}'.padEnd(bytes)) {
      await turn();
      await turn();
      raw.write(byte);
    }
  };
  await sendFrame(64);
  assert.deepEqual(await client.next(), { type: 'pong' });
  await sendFrame(65);
  assert.equal((await client.closed).code, 1008);
});
