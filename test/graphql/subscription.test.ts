/** `commentAdded` by the engine alone (Spec §6): one result for each comment, in order. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReadyOperation, Subscription } from '../../dist/graphql/engine.js';
import type { GraphqlResult } from '../../dist/graphql/result.js';
import type { Comment } from '../../dist/store/model.js';
import { codesOf, startGraphql, type TestGraphql } from '../support/graphql.js';

function subscribe(graphql: TestGraphql, query: string): Promise<Subscription> {
  const prepared = graphql.engine.prepare({ query });
  assert.ok(prepared.kind === 'ready');
  return graphql.engine.subscribe(prepared satisfies ReadyOperation, graphql.scope());
}

async function stream(
  graphql: TestGraphql,
  query: string,
): Promise<AsyncIterator<GraphqlResult, undefined>> {
  const prepared = graphql.engine.prepare({ query });
  assert.ok(prepared.kind === 'ready');
  const scope = graphql.scope();
  const subscription = await graphql.engine.subscribe(prepared, scope);
  assert.ok(subscription.kind === 'stream');
  const { events, toJson } = subscription;
  return {
    async next() {
      const { value, done } = await events.next();
      if (done === true) return { value: undefined, done };
      const json = await toJson(value);
      scope.budget.release();
      return { value: JSON.parse(json) as GraphqlResult, done: false };
    },
    async return() {
      await events.return?.();
      return { value: undefined, done: true };
    },
  };
}

function comment(content: string): Comment {
  return { id: content, content, createdAt: '2026-01-05T09:00:00', postId: 'p' };
}

test('every subscriber gets every comment, with the fields it selected', async () => {
  const graphql = startGraphql();
  const one = await stream(graphql, 'subscription { commentAdded { content } }');
  const two = await stream(graphql, 'subscription { commentAdded { id createdAt postId } }');
  graphql.topic.publish(comment('a'));
  graphql.topic.publish(comment('b'));
  for (const content of ['a', 'b']) {
    assert.deepEqual(structuredClone((await one.next()).value), {
      data: { commentAdded: { content } },
    });
    assert.deepEqual(structuredClone((await two.next()).value), {
      data: { commentAdded: { id: content, createdAt: '2026-01-05T09:00:00', postId: 'p' } },
    });
  }
  await one.return?.();
  await two.return?.();
});

test('return() settles a pending next() and leaves the topic at once', async () => {
  const graphql = startGraphql();
  const results = await stream(graphql, 'subscription { commentAdded { id } }');
  assert.equal(graphql.topic.size, 1);
  const pending = results.next();
  await results.return?.();
  assert.deepEqual(await pending, { value: undefined, done: true });
  assert.equal(graphql.topic.size, 0);
});

test('each event has the whole budget, and one event no more than it', async () => {
  const graphql = startGraphql({ env: { WAITING_BYTES_MAX: '1048576' } });
  const results = await stream(graphql, 'subscription { commentAdded { content } }');
  for (const length of [60_000, 60_000, 300_000, 10]) {
    graphql.topic.publish(comment('x'.repeat(length)));
    const { value } = await results.next();
    assert.deepEqual(codesOf(value ?? {}), length > 262_144 ? ['PAYLOAD_TOO_LARGE'] : []);
  }
  await results.return?.();
  assert.equal(graphql.pool.bytes, 0);
});

test('a subscription that cannot begin is refused, and leaves nothing behind', async () => {
  const graphql = startGraphql();
  const query = 'subscription ($x: Boolean!) { commentAdded { id @skip(if: $x) } }';
  const subscription = await subscribe(graphql, query);
  assert.ok(subscription.kind === 'refused');
  assert.deepEqual(codesOf(subscription), ['BAD_USER_INPUT']);
  assert.equal(graphql.topic.size, 0);
});

test('a topic that fails is masked', async () => {
  const commentAdded = {
    subscribe(): never {
      throw new Error('secret');
    },
  };
  const graphql = startGraphql({ commentAdded });
  const subscription = await subscribe(graphql, 'subscription { commentAdded { id } }');
  assert.ok(subscription.kind === 'refused');
  assert.deepEqual(codesOf(subscription), ['INTERNAL_SERVER_ERROR']);
  assert.ok(!JSON.stringify(subscription).includes('secret'));
  assert.equal(graphql.logged.length, 1);
});

test('a subscription of nothing does not hang, and leaves nothing behind', async () => {
  const graphql = startGraphql();
  const query = 'subscription { commentAdded @skip(if: true) { id } }';
  const prepared = graphql.engine.prepare({ query });
  if (prepared.kind === 'refused') return;
  await assert.rejects(graphql.engine.subscribe(prepared, graphql.scope()));
  assert.equal(graphql.topic.size, 0);
});

test('two root fields in one subscription are refused', () => {
  const query = 'subscription { a: commentAdded { id } b: commentAdded { id } }';
  assert.equal(startGraphql().engine.prepare({ query }).kind, 'refused');
});
