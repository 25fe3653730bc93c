/** `commentAdded` by the engine alone (Spec §6): one result for each comment, in order. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReadyOperation, Subscription } from '../../dist/graphql/engine.js';
import { codesOf, startGraphql, type TestGraphql } from '../support/graphql.js';

function subscribe(graphql: TestGraphql, query: string): Promise<Subscription> {
  const prepared = graphql.engine.prepare({ query });
  assert.ok(prepared.kind === 'ready');
  return graphql.engine.subscribe(prepared satisfies ReadyOperation, graphql.scope());
}

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
