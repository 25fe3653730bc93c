/** Events and the store: those with an author wait alone (R48), and what is away is waited for. */

import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { AppError } from '../../dist/errors.js';
import { startEndpoint } from '../support/graphql-endpoint.ts';
import { gate } from '../support/http-kit.ts';
import { made } from '../support/made.ts';
import { until } from '../support/until.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

describe('an event', () => {
  it('with the author keeps no other waiting while that is read', async (t) => {
    const endpoint = await startEndpoint(t);
    const { store, postId } = endpoint;
    const { authorId } = made(await store.posts.find(postId));
    assert.ok(authorId !== null);
    const author = made(await store.authors.find(authorId));
    const read = gate();
    const find = async () => {
      await read.opened;
      return author;
    };
    Object.assign(store.authors, { find });
    const client = await connectReady(endpoint.port);
    t.after(() => client.socket.terminate());
    client.send(subscribe('author', 'subscription { commentAdded { author { name email } } }'));
    client.send(subscribe('plain', 'subscription { commentAdded { content } }'));
    await client.settle();
    await store.comments.add(postId, 'a', { authorId });
    await store.comments.add(postId, 'b');
    const words: unknown[] = [];
    for (let count = 0; count < 2; count += 1) words.push(await client.next());
    const toPlain = (content: string) => {
      return { id: 'plain', type: 'next', payload: { data: { commentAdded: { content } } } };
    };
    assert.deepEqual(words, [toPlain('a'), toPlain('b')]);
    read.open();
    for (const expected of [{ name: author.name, email: author.email }, null]) {
      const payload = { data: { commentAdded: { author: expected } } };
      assert.deepEqual(await client.next(), { id: 'author', type: 'next', payload });
    }
  });

  it('has no other records than those', async (t) => {
    const endpoint = await startEndpoint(t);
    const client = await connectReady(endpoint.port);
    t.after(() => client.socket.terminate());
    const lists = [
      'author { posts { id } }',
      'author { ...A }',
      'author { a: posts(first: 1) { __typename } }',
      '... on Comment { author { ... { posts { comments { id } } } } }',
    ];
    for (const [at, fields] of lists.entries()) {
      const query = `subscription { commentAdded { ${fields} } }
        fragment A on Author { posts { id } }`;
      const used = fields.includes('...A') ? query : query.split('\n')[0];
      const { type, payload } = await client.ask(subscribe(`${at}`, used ?? ''));
      assert.equal(type, 'error', fields);
      assert.match(JSON.stringify(payload), /ask for other records by a query.*BAD_USER_INPUT/);
    }
    assert.equal(endpoint.subscriptions.count().subscribers, 0);
  });
});

test('an event whose post cannot be read waits for the store', async (t) => {
  const endpoint = await startEndpoint(t, { env: { REQUIRE_AUTH: 'owners' } });
  const { store, postId, subscriptions } = endpoint;
  await store.posts.update(postId, { status: 'PUBLISHED' });
  const client = await connectReady(endpoint.port);
  t.after(() => client.socket.terminate());
  client.send(subscribe('1', 'subscription { commentAdded { content } }'));
  await until('a subscriber', () => subscriptions.count().subscribers === 1);
  const find = t.mock.method(store.posts, 'find');
  find.mock.mockImplementationOnce(() => {
    throw new AppError('unavailable', 'away');
  });
  endpoint.comment('late');
  const { type, payload } = await client.next();
  assert.deepEqual([type, payload], ['next', { data: { commentAdded: { content: 'late' } } }]);
});
