/** Subscriptions of the whole service: who announces, who listens, who stops. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer, type TestServer } from '../support/server.ts';
import { askUpgrade, connectByHand, connectReady, upgradeLines } from '../support/ws-clients.ts';
import { assertWithin } from '../support/pace.ts';

const subscription = 'subscription { commentAdded { content postId } }';
const protocols = ['graphql-transport-ws'];

async function firstPostId(server: TestServer): Promise<string> {
  const posts = (await (await server.fetch('/posts')).json()) as { id: string }[];
  return posts[0]?.id ?? '';
}

test('a comment that is refused is announced to nobody', async (t) => {
  const server = await startServer(t);
  const postId = await firstPostId(server);
  const client = await connectReady(server.port, { protocols });
  client.send({ id: '1', type: 'subscribe', payload: { query: subscription } });
  client.send({ type: 'ping' });
  await client.next();
  await server.send('POST', `/posts/${postId}/comments`, { content: ' ' });
  await server.send('POST', '/posts/none/comments', { content: 'x' });
  await server.send('POST', `/posts/${postId}/comments`, { content: 'the first' });
  const payload = { data: { commentAdded: { content: 'the first', postId } } };
  assert.deepEqual((await client.next()).payload, payload);
  await client.close();
});

test('the first upgrades, all at once, are each served', async (t) => {
  const server = await startServer(t);
  const asked = Array.from({ length: 10 }, () => connectReady(server.port, { protocols }));
  for (const client of await Promise.all(asked)) await client.close();
  assert.equal((await askUpgrade(server.port, upgradeLines({}, '/posts'))).status, 404);
});

test('a stop ends sockets with 1001 and streams without waiting for them', async (t) => {
  const server = await startServer(t);
  const client = await connectByHand(server.port, { protocols });
  const query = encodeURIComponent(subscription);
  const stream = await server.fetch(`/graphql?query=${query}`, {
    headers: { Accept: 'text/event-stream' },
  });
  const began = performance.now();
  await server.stop();
  assert.equal((await client.closed).code, 1001);
  assert.equal(await stream.text(), ':\n\n');
  assertWithin(4_000, performance.now() - began);
});
