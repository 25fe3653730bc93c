/** `commentAdded`: one result for each comment, in order, made once for each group. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTopic } from '../../dist/domain/comments.js';
import type { Subscription } from '../../dist/graphql/engine.js';
import { RequestError } from '../../dist/graphql/errors.js';
import { codesOf, type GraphqlResult, startGraphql, type TestGraphql } from '../support/graphql.js';
import { createBench, operationOf, Reader, streamOf } from '../support/subscriptions.js';
import { unweighed } from '../support/topic.js';

/** Long enough for an event to come to its members: on a busy machine it yields in between. */
async function turn(): Promise<void> {
  for (let count = 0; count < 20; count += 1) {
    await new Promise((resolve) => void setImmediate(resolve));
  }
}
const one = operationOf('subscription { a }');

test('members of one group get the same event object, made once', async () => {
  const { subscriptions, source, opened } = createBench();
  const readers = [new Reader(), new Reader(), new Reader()];
  for (const reader of readers) subscriptions.join(one, reader);
  await turn();
  source.publish({ data: { a: 1 } });
  await turn();
  assert.equal(opened(), 1);
  assert.equal(readers[0]?.texts()[0], '{"data":{"a":1}}');
  assert.equal(new Set(readers.map((reader) => reader.events[0])).size, 1);
});

test('other documents, operation names and variables are other groups', async () => {
  const { subscriptions, opened } = createBench();
  const operations = [
    one,
    operationOf('subscription { b }'),
    operationOf('subscription { a }', { x: 1 }),
    operationOf('subscription { a }', { x: 2 }),
    { ...one, operationName: 'n' },
  ];
  for (const operation of operations) subscriptions.join(operation, new Reader());
  await turn();
  assert.deepEqual(subscriptions.count(), { groups: 5, subscribers: 5 });
  subscriptions.join(operationOf('subscription { a }', {}), new Reader());
  assert.equal(opened(), 5);
});

test('who joins late gets the events from then on', async () => {
  const { subscriptions, source } = createBench();
  const [first, late] = [new Reader(), new Reader()];
  subscriptions.join(one, first);
  await turn();
  source.publish({ data: { a: 1 } });
  await turn();
  subscriptions.join(one, late);
  source.publish({ data: { a: 2 } });
  await turn();
  assert.equal(first.events.length, 2);
  assert.deepEqual(late.texts(), ['{"data":{"a":2}}']);
});

test('a group ends its source with its last member, and the next one opens a new one', async () => {
  const { subscriptions, source, opened } = createBench();
  const leaves = [new Reader(), new Reader()].map((reader) => subscriptions.join(one, reader));
  await turn();
  leaves[0]?.();
  leaves[0]?.();
  assert.equal(source.size, 1);
  leaves[1]?.();
  assert.equal(source.size, 0);
  assert.deepEqual(subscriptions.count(), { groups: 0, subscribers: 0 });
  subscriptions.join(one, new Reader());
  await turn();
  assert.equal(opened(), 2);
  assert.equal(source.size, 1);
});

test('a source that opens after its last member left is ended at once', async () => {
  const source = createTopic<GraphqlResult>({ ...unweighed, queueMax: 1 });
  let open: (opening: Subscription) => void = () => undefined;
  const { subscriptions } = createBench(() => new Promise((resolve) => void (open = resolve)));
  subscriptions.join(one, new Reader())();
  open(streamOf(source));
  await turn();
  assert.equal(source.size, 0);
});

test('a member that leaves while an event goes round takes nothing from the others', async () => {
  const { subscriptions, source } = createBench();
  const readers = [new Reader(), new Reader(), new Reader()];
  const leaves = readers.map((reader) => subscriptions.join(one, reader));
  const leaver = readers[0];
  if (leaver) {
    leaver.next = () => {
      leaves[0]?.();
      return true;
    };
  }
  await turn();
  source.publish({ data: { a: 1 } });
  await turn();
  const found = readers.map((reader) => reader.events.length);
  assert.deepEqual(found, [0, 1, 1]);
});

test('more members than one turn can serve all get the events, in order', async () => {
  const { subscriptions, source } = createBench();
  const readers = Array.from({ length: 4_500 }, () => new Reader());
  for (const reader of readers) subscriptions.join(one, reader);
  await turn();
  for (const a of [1, 2, 3]) source.publish({ data: { a } });
  while ((readers.at(-1)?.events.length ?? 3) < 3) await turn();
  const texts = [1, 2, 3].map((a) => `{"data":{"a":${a}}}`);
  for (const reader of readers) assert.deepEqual(reader.texts(), texts);
});

test('a source that ends completes its members', async () => {
  const results = async function* events(): AsyncGenerator<GraphqlResult> {
    yield { data: { a: 1 } };
  };
  const { subscriptions } = createBench(() => Promise.resolve(streamOf({ subscribe: results })));
  const reader = new Reader();
  subscriptions.join(one, reader);
  while (reader.endings.length === 0) await turn();
  assert.deepEqual([reader.events.length, reader.endings], [1, [{ kind: 'complete' }]]);
});

test('what refuses a subscription is told to each member', async () => {
  const errors = [{ message: 'no', extensions: { code: 'BAD_USER_INPUT' } }] as const;
  const { subscriptions } = createBench(() => Promise.reject(new RequestError(errors)));
  const readers = [new Reader(), new Reader()];
  for (const reader of readers) subscriptions.join(one, reader);
  await turn();
  for (const { endings } of readers) assert.deepEqual(endings, [{ kind: 'refused', errors }]);
  assert.equal(subscriptions.count().groups, 0);
});

test('a source that fails ends its members and is logged once', async () => {
  const failed = Promise.reject(new Error('broken'));
  const { subscriptions, logged, dropped } = createBench(() => failed);
  const readers = [new Reader(), new Reader()];
  for (const reader of readers) subscriptions.join(one, reader);
  await turn();
  for (const { endings } of readers) assert.equal(endings[0]?.kind, 'refused');
  assert.deepEqual(logged, ['subscription failed']);
  assert.deepEqual(dropped, ['failed', 'failed']);
});

test('events that come faster than they are taken end the group as overloaded', async () => {
  const { subscriptions, source, logged, dropped } = createBench(undefined, { queueMax: 2 });
  const reader = new Reader();
  subscriptions.join(one, reader);
  await turn();
  for (let a = 0; a < 9; a += 1) source.publish({ data: { a } });
  await turn();
  assert.deepEqual(reader.endings, [{ kind: 'overrun' }]);
  assert.deepEqual([logged, dropped], [[], ['overrun']]);
});

test('what a group keeps is counted, and refused where the pool has less left', async () => {
  const { subscriptions, pool } = createBench(undefined, { poolBytesMax: 10_000 });
  const leave = subscriptions.join(one, new Reader());
  assert.ok(pool.bytes > 0);
  const large = operationOf(`subscription { ${'a '.repeat(20)} }`);
  assert.throws(() => subscriptions.join(large, new Reader()), { code: 'overloaded' });
  subscriptions.join(one, new Reader())();
  leave();
  await turn();
  assert.equal(pool.bytes, 0);
});

/** By the engine alone (Spec §6). */
function subscribe(graphql: TestGraphql, query: string): Promise<Subscription> {
  const { engine } = graphql;
  return engine.subscribe(engine.prepare({ query }), { requestId: 'r-1', viewer: () => undefined });
}

test('a subscription that cannot begin is refused, and leaves nothing behind', async () => {
  const graphql = startGraphql();
  const query = 'subscription ($x: Boolean!) { commentAdded { id @skip(if: $x) } }';
  await assert.rejects(subscribe(graphql, query), (error: RequestError) => {
    assert.deepEqual(codesOf(error), ['BAD_USER_INPUT']);
    return true;
  });
  assert.equal(graphql.topic.size, 0);
});

test('a subscription of nothing does not hang, and leaves nothing behind', async () => {
  const graphql = startGraphql();
  const query = 'subscription { commentAdded @skip(if: true) { id } }';
  await assert.rejects(async () => subscribe(graphql, query));
  assert.equal(graphql.topic.size, 0);
});

test('two root fields in one subscription are refused', () => {
  const query = 'subscription { a: commentAdded { id } b: commentAdded { id } }';
  assert.deepEqual(startGraphql().refusalOf({ query }), ['GRAPHQL_VALIDATION_FAILED']);
});
