/** What an event needs and cannot be read is waited for. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../dist/errors.js';
import { startEndpoint } from '../support/graphql-endpoint.ts';
import { until } from '../support/until.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

const subscription = 'subscription { commentAdded { content } }';

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
