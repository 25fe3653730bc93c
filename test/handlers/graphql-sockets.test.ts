/** Subscriptions of the whole service: who announces, who listens, who stops. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../support/server.ts';
import { askUpgrade, connectByHand, connectReady, upgradeLines } from '../support/ws-clients.ts';
import { assertWithin } from '../support/pace.ts';

const query = 'subscription { commentAdded { content postId } }';
const protocols = ['graphql-transport-ws'];

test('a comment that is refused is announced to nobody', async (t) => {
  const server = await startServer(t);
  const postId = (await server.read<{ id: string }[]>('/posts'))[0]?.id ?? '';
  // The first upgrades, all at once, are each served.
  const asked = Array.from({ length: 10 }, () => connectReady(server.port, { protocols }));
  const [client = assert.fail(), ...others] = await Promise.all(asked);
  for (const other of others) await other.close();
  assert.equal((await askUpgrade(server.port, upgradeLines({}, '/posts'))).status, 404);
  client.send({ id: '1', type: 'subscribe', payload: { query } });
  client.send({ type: 'ping' });
  await client.next();
  await server.send('POST', `/posts/${postId}/comments`, { content: ' ' });
  await server.send('POST', '/posts/none/comments', { content: 'x' });
  await server.make(`/posts/${postId}/comments`, { content: 'the first' });
  const payload = { data: { commentAdded: { content: 'the first', postId } } };
  assert.deepEqual((await client.next()).payload, payload);
  await client.close();
});

test('a stop ends sockets with 1001 and streams without waiting for them', async (t) => {
  const server = await startServer(t);
  const client = await connectByHand(server.port, { protocols });
  const headers = { Accept: 'text/event-stream' };
  const stream = await server.fetch(`/graphql?query=${encodeURIComponent(query)}`, { headers });
  const began = performance.now();
  await server.stop();
  assert.equal((await client.closed).code, 1001);
  assert.equal(await stream.text(), ':\n\n');
  assertWithin(4_000, performance.now() - began);
});
