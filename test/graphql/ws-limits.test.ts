/** Every limit of a WebSocket, crossed; and what a hostile or dead client cannot do to others. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ConnectionMemory } from '../../dist/memory-pool.js';
import type { Engine } from '../../dist/graphql/engine.js';
import { holdTurns, startEndpoint } from '../support/graphql-endpoint.ts';
import { connectByHand, connectReady, subscribe } from '../support/ws-clients.ts';
import { keepOthersServed } from '../support/prober.ts';
import { times } from '../support/lists.ts';
import { until } from '../support/until.ts';

keepOthersServed();

const subscription = 'subscription { commentAdded { content } }';
const query = (at: number): object => subscribe(`q${at}`, '{ __typename }');
const big = { data: { big: 'x'.repeat(200_000) } };
const withExecute = (run: () => typeof big | Promise<typeof big>) => (engine: Engine) => ({
  ...engine,
  execute: async () => ({ json: JSON.stringify(await run()), codes: [], isRepeatable: false }),
});

describe('operations', { concurrency: 4 }, () => {
  test('subscriptions have a share of the connection, and leave room for queries', async (t) => {
    const endpoint = await startEndpoint(t, { env: { REQUEST_MEMORY_BYTES_MAX: '1048576' } });
    const client = await connectReady(endpoint.port);
    for (let id = 0; id <= 50; id += 1) client.send(subscribe(`${id}`, subscription));
    const { type, id, payload } = await client.next();
    assert.equal(type, 'error');
    assert.match(JSON.stringify(payload), /end some.*"UNAVAILABLE"/);
    for (let other = Number(id) + 1; other <= 50; other += 1) await client.next();
    assert.equal((await client.ask(subscribe('q', '{ __typename }'))).type, 'next');
    assert.equal((await client.next()).type, 'complete');
    client.send({ type: 'complete', id: '0' });
    client.send(subscribe('again', subscription));
    await client.settle();
  });

  test('memory that others fill is no fault of the client, who may try again', async (t) => {
    const endpoint = await startEndpoint(t);
    const client = await connectReady(endpoint.port);
    const others = new ConnectionMemory(endpoint.pool).openLasting();
    others.set(endpoint.pool.bytesMax);
    // More than count as part of a connection.
    for (let id = 0; id < 16; id += 1) client.send(subscribe(`${id}`, subscription));
    const { type, payload } = await client.next();
    assert.equal(type, 'error');
    assert.match(JSON.stringify(payload), /"code":"UNAVAILABLE","retryAfterSeconds":1/);
    others.release();
    assert.equal((await client.ask(subscribe('q', '{ __typename }'))).type, 'next');
  });

  // On the newer protocol nothing waits for `connection_init` (R28).
  test('what waits for the acknowledgement has a small share', async (t) => {
    const env = { REQUEST_MEMORY_BYTES_MAX: '1048576' };
    const client = await connectByHand(startEndpoint(t, { env }), { protocols: ['graphql-ws'] });
    // Two bytes for each character: one is more than is left of the share.
    const text = JSON.stringify(subscribe('1', '{ __typename }'));
    client.sendText(text.padEnd(20_000));
    client.sendText(text.replace('"1"', '"2"').padEnd(20_000));
    assert.equal((await client.ask({ type: 'connection_init' })).id, '2');
    assert.equal((await client.next()).type, 'connection_ack');
    assert.deepEqual([(await client.next()).id, (await client.next()).id], ['1', '1']);
  });

  test('answers that are not read stop new queries, and reading lets them go on', async (t) => {
    let executed = 0;
    const wrap = withExecute(() => {
      executed += 1;
      return big;
    });
    const env = { REQUEST_MEMORY_BYTES_MAX: '8388608' };
    const client = await connectReady(startEndpoint(t, { wrap, env }));
    client.socket.pause();
    for (const at of times(90)) client.send(query(at));
    for (let seen = -1; executed !== seen;) {
      seen = executed;
      for (const _ of times(200)) await turn();
    }
    assert.ok(executed < 80, `${executed} executed though nothing is read`);
    client.socket.resume();
    for (const at of times(90)) {
      assert.deepEqual((await client.next()).payload, big, `round ${at}`);
      assert.equal((await client.next()).id, `q${at}`, `round ${at}`);
    }
  });

  test('queries that take long run ten at a time, and one that was stopped says nothing', async (t) => {
    const waiting: ((result: typeof big) => void)[] = [];
    const wrap = withExecute(() => new Promise((resolve) => void waiting.push(resolve)));
    const client = await connectReady(startEndpoint(t, { wrap }));
    for (const at of times(12)) client.send(query(at));
    client.send({ type: 'complete', id: 'q0' });
    await until('ten operations', () => waiting.length >= 10);
    await client.settle();
    assert.equal(waiting.length, 10);
    for (const finish of waiting.splice(0)) finish(big);
    // Operations that go on at once have no order.
    const ended = async (count: number): Promise<readonly string[]> => {
      const ids: string[] = [];
      while (ids.length < count) {
        const { type, id } = await client.next();
        if (type === 'complete') ids.push(String(id));
      }
      return ids.toSorted();
    };
    assert.equal((await ended(9)).join(), 'q1,q2,q3,q4,q5,q6,q7,q8,q9');
    await until('two operations that wait', () => waiting.length >= 2);
    for (const finish of waiting) finish(big);
    assert.equal((await ended(2)).join(), 'q10,q11');
  });

  test('what is stopped before its turn, or while its account is read, does nothing', async (t) => {
    const { waiting, wrap: hold } = holdTurns();
    let executed = 0;
    let answer: ((account: undefined) => void) | undefined;
    const execute = withExecute(() => {
      executed += 1;
      return big;
    });
    const authorize = () => new Promise<undefined>((resolve) => void (answer = resolve));
    const wrap = (engine: Engine): Engine => ({ ...execute(hold(engine)), authorize });
    const { port, subscriptions } = await startEndpoint(t, { wrap });
    const client = await connectReady(port);
    const stop = async (id: string): Promise<void> => {
      client.send({ type: 'complete', id });
      await client.settle();
    };
    client.send(query(1));
    await stop('q1');
    client.send(subscribe('s', subscription));
    await client.settle();
    for (const _ of times(5)) {
      for (const call of waiting.splice(0)) call();
      await turn();
    }
    await until('the question for the account', () => answer !== undefined);
    await stop('s');
    answer?.(undefined);
    await client.settle();
    assert.deepEqual([executed, subscriptions.count().subscribers], [0, 0]);
  });

  test('a fault of the service in an execution is masked, logged, and leaves the socket open', async (t) => {
    const wrap = withExecute(() => Promise.reject(new Error('secret')));
    const { port, logged } = await startEndpoint(t, { wrap });
    const client = await connectReady(port);
    const message = await client.ask(subscribe('1', '{ __typename }'));
    assert.equal(message.type, 'error');
    assert.doesNotMatch(JSON.stringify(message), /secret/);
    assert.match(JSON.stringify(message), /"requestId":"test"/);
    assert.deepEqual(logged, ['graphql operation failed']);
  });

  test('a fault of the service elsewhere closes one socket with 1011', async (t) => {
    const wrap = (engine: Engine): Engine => {
      const fail = (): never => {
        throw new Error('secret');
      };
      return Object.defineProperty({ ...engine }, 'hasReaders', { get: fail });
    };
    const { port, logged } = await startEndpoint(t, { wrap });
    const other = await connectReady(port);
    const client = await connectReady(port);
    client.send(subscribe('1', '{ __typename }'));
    assert.deepEqual(await client.closed, { code: 1011, reason: 'The server failed' });
    assert.deepEqual(logged, ['websocket failed']);
    assert.equal((await other.ask({ type: 'ping' })).type, 'pong');
  });
});

describe('peers', { concurrency: 4 }, () => {
  test('one that answers no ping is ended, one that does is kept', async (t) => {
    // Long enough for a loaded machine to bring the answer to a ping.
    const { port, sockets } = await startEndpoint(t, { constants: { wsPingSeconds: 3 } });
    const dead = await connectReady(port, { autoPong: false });
    const alive = await connectReady(port);
    assert.equal((await dead.closed).code, 1006);
    await until('one socket', () => sockets.size === 1);
    assert.equal((await alive.ask({ type: 'ping' })).type, 'pong');
  });

  test('one that does not read is closed with 1013, and a reader gets all in order', async (t) => {
    const env = { REQUEST_MEMORY_BYTES_MAX: '8388608' };
    const endpoint = await startEndpoint(t, { env, constants: { wsPingSeconds: 60 } });
    const silent = await connectReady(endpoint.port);
    const reader = await connectReady(endpoint.port);
    silent.send(subscribe('s', subscription));
    reader.send(subscribe('r', subscription));
    reader.send(subscribe('r2', 'subscription { commentAdded { postId } }'));
    await until('three subscribers', () => endpoint.subscriptions.count().subscribers >= 3);
    silent.socket.pause();
    let sent = 0;
    for (; endpoint.subscriptions.count().subscribers === 3 && sent < 2_000; sent += 1) {
      const content = `${sent} ${'x'.repeat(50_000)}`;
      endpoint.comment(content);
      const { payload } = [await reader.next(), await reader.next()].find(({ id }) => id === 'r')!;
      assert.deepEqual(payload, { data: { commentAdded: { content } } });
    }
    assert.ok(sent < 2_000);
    silent.socket.resume();
    assert.equal((await silent.closed).code, 1013);
    assert.ok(silent.received.length < sent);
  });

  test('queues share one budget: the more sockets, the smaller each', async (t) => {
    const env = { REQUEST_MEMORY_BYTES_MAX: String(1024 * 1024) };
    const endpoint = await startEndpoint(t, { env });
    for (const _ of times(16)) {
      const client = await connectReady(endpoint.port);
      client.send(subscribe('s', subscription));
      client.socket.pause();
    }
    await until('16 subscribers', () => endpoint.subscriptions.count().subscribers >= 16);
    for (let sent = 0; endpoint.subscriptions.count().subscribers > 0 && sent < 2_000; sent += 1) {
      endpoint.comment('x'.repeat(50_000));
      await turn();
    }
    assert.equal(endpoint.subscriptions.count().subscribers, 0);
  });

  test('a reset in the middle of everything harms nobody', async (t) => {
    const endpoint = await startEndpoint(t);
    const reader = await connectReady(endpoint.port);
    reader.send(subscribe('r', subscription));
    for (let count = 0; count < 10; count += 1) {
      const client = await connectReady(endpoint.port);
      client.send(subscribe('s', subscription));
      client.socket.terminate();
    }
    await until('all but one socket closed', () => endpoint.sockets.size <= 1);
    endpoint.comment('hello');
    assert.equal((await reader.next()).id, 'r');
    assert.deepEqual(endpoint.subscriptions.count(), { groups: 1, subscribers: 1 });
  });
});
