/** Operations over the newer protocol, case by case, over real sockets. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { useEndpoint } from '../support/graphql-endpoint.ts';
import { askEvents, nextEvent, withoutId } from '../support/sse-client.ts';
import { connectByHand, connectReady, type HandClient, subscribe } from '../support/ws-clients.ts';
import { keepOthersServed } from '../support/prober.ts';

keepOthersServed();

const subscription = 'subscription { commentAdded { content postId } }';
const introspection = '{ __typename }';

describe('operations over graphql-transport-ws', () => {
  const endpoint = useEndpoint();
  const connect = (): Promise<HandClient> => connectByHand(endpoint().port);
  const ready = (): Promise<HandClient> => connectReady(endpoint().port);

  describe('queries and mutations', () => {
    test('an id may hold any character, and is free again once its operation is complete', async () => {
      const client = await ready();
      const id = '"\\\u0000 \u2028 é 😀';
      for (const round of [1, 2, 3]) {
        for (const type of ['next', 'complete']) {
          if (type === 'next') client.send(subscribe(id, introspection));
          const message = await client.next();
          assert.deepEqual([message.id, message.type], [id, type], `round ${round}`);
        }
      }
    });

    test('operations sent before the acknowledgement run after it, in their order', async () => {
      const client = await connect();
      client.send({ type: 'connection_init' });
      client.send(subscribe('events', subscription));
      const add = `mutation { addComment(commentInput: {postId: "${endpoint().postId}", content: "y"}) }`;
      assert.deepEqual(await client.ask(subscribe('add', add)), { type: 'connection_ack' });
      const seen = [await client.next(), await client.next(), await client.next()];
      assert.ok(seen.some(({ id, type }) => id === 'events' && type === 'next'));
      assert.ok(seen.some(({ id, type }) => id === 'add' && type === 'complete'));
    });

    test('an unexpected field error comes in next, with data', async () => {
      const client = await ready();
      const add = 'mutation { addComment(commentInput: {postId: "none", content: "y"}) }';
      const message = await client.ask(subscribe('1', add));
      const { errors } = message.payload as { errors: { extensions: unknown }[] };
      assert.equal(message.type, 'next');
      assert.deepEqual(errors[0]?.extensions, { code: 'NOT_FOUND' });
    });
  });

  describe('errors in one operation leave the others running (R31)', () => {
    for (const [name, query, code] of [
      ['syntax', '{', 'GRAPHQL_PARSE_FAILED'],
      ['an empty document', '', 'GRAPHQL_PARSE_FAILED'],
      ['an unknown field', '{ nothing }', 'GRAPHQL_VALIDATION_FAILED'],
      ['an unknown subscription', 'subscription { nothing }', 'GRAPHQL_VALIDATION_FAILED'],
      ['no variable', 'query ($a: String!) { postById(postId: $a) { id } }', 'BAD_USER_INPUT'],
    ] as const) {
      test(name, async () => {
        const client = await ready();
        client.send(subscribe('good', subscription));
        const message = await client.ask(subscribe('bad', query));
        assert.equal(message.type, 'error');
        assert.equal(message.id, 'bad');
        const [error] = message.payload as { message: string; extensions: object }[];
        assert.deepEqual(error?.extensions, { code });
        assert.ok(error.message.length > 0);
        await client.settle();
        endpoint().comment(`still there after ${name}`);
        assert.equal((await client.next()).id, 'good');
      });
    }
  });

  describe('subscriptions', () => {
    test('after complete nothing comes any more, not even complete', async () => {
      const client = await ready();
      client.send(subscribe('s', subscription));
      client.send({ id: 's', type: 'complete' });
      await client.settle();
      endpoint().comment('unheard');
      await client.settle();
      assert.deepEqual(client.received, []);
    });

    test('with postId only comments of that post come, over both transports (R38)', async () => {
      const client = await ready();
      const { postId } = endpoint();
      const query = 'subscription ($postId: String) { commentAdded(postId: $postId) { content } }';
      const ask = (id: string, named: string | null | undefined): void =>
        client.send(subscribe(id, query, { variables: { postId: named } }));
      const posts = { it: postId.toUpperCase(), 'it too': postId.toUpperCase(), all: null };
      const others = { another: '019a0000-0000-7000-8000-000000000000', none: 'no id' };
      for (const [of, named] of Object.entries({ ...posts, ...others })) ask(`of ${of}`, named);
      await client.settle();
      const literal = `subscription { commentAdded(postId: "${postId}") { content } }`;
      const reader = await askEvents(endpoint(), literal);
      assert.equal(await reader.next(), ':');
      endpoint().comment('of one post');
      const data = { commentAdded: { content: 'of one post' } };
      const ids = new Set<string | undefined>();
      for (let count = 0; count < 3; count += 1) {
        const { id, payload } = await client.next();
        assert.deepEqual(payload, { data }, `round ${count}`);
        ids.add(id);
      }
      assert.deepEqual(ids, new Set(['of it', 'of it too', 'of all']));
      assert.equal(withoutId(await reader.next()), nextEvent({ data }));
      await client.settle();
    });
  });
});
