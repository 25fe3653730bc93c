/** The library's own client of the newer protocol, and whose account an operation runs under. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { useEndpoint } from '../support/graphql-endpoint.js';
import { connectByHand, connectReady, modernClient } from '../support/ws-clients.js';
import { until } from '../support/until.js';

const protocols = ['graphql-transport-ws'];
const subscription = 'subscription { commentAdded { content postId } }';
const introspection = '{ __typename }';

const subscribe = (id: string, query: string): object => {
  return { id, type: 'subscribe', payload: { query } };
};

describe('clients of graphql-transport-ws', () => {
  const endpoint = useEndpoint();

  describe("the library's own client", () => {
    test('queries, and sees errors', async () => {
      const { client, run } = modernClient(endpoint().port);
      assert.deepEqual(await run('{ __typename }'), [{ data: { __typename: 'Query' } }]);
      await assert.rejects(run('{ nothing }'), (errors: unknown) => Array.isArray(errors));
      await client.dispose();
    });

    test('subscribes and stops', async () => {
      const { client } = modernClient(endpoint().port);
      const events = client.iterate({ query: subscription });
      const { subscribers } = endpoint().subscriptions.count();
      const first = events.next();
      await until(() => endpoint().subscriptions.count().subscribers !== subscribers);
      endpoint().comment('for the client');
      const { value } = (await first) as { value: { data: unknown } };
      assert.deepEqual(value.data, {
        commentAdded: { content: 'for the client', postId: endpoint().postId },
      });
      await events.return?.();
      await client.dispose();
    });

    test('is told why it is refused', async () => {
      const { client, run } = modernClient(endpoint().port, {
        connectionParams: { rejectMessage: 'not you' },
      });
      await assert.rejects(run('{ __typename }'), { code: 4403, reason: 'not you' });
      await client.dispose();
    });
  });

  describe('the viewer', () => {
    const create = 'mutation { createPost(createPostInput: {title: "t", content: "c"}) }';

    test('comes from the upgrade request, and is asked for only where it is needed', async () => {
      const headers = { Authorization: 'Bearer header' };
      const client = await connectReady(endpoint().port, { protocols, headers });
      const asked = endpoint().authorizations.length;
      client.send(subscribe('1', introspection));
      await client.next();
      await client.next();
      assert.equal(endpoint().authorizations.length, asked);
      client.send(subscribe('2', create));
      await client.next();
      assert.equal(endpoint().authorizations.at(-1), 'Bearer header');
      await client.close();
    });

    test('comes from the payload of connection_init before the header', async () => {
      const headers = { Authorization: 'Bearer header' };
      const client = await connectByHand(endpoint().port, { protocols, headers });
      client.send({ type: 'connection_init', payload: { Authorization: 'Bearer payload' } });
      await client.next();
      client.send(subscribe('2', create));
      await client.next();
      assert.equal(endpoint().authorizations.at(-1), 'Bearer payload');
      await client.close();
    });

    test('with a bad token makes the operation fail, not the socket', async () => {
      const client = await connectByHand(endpoint().port, { protocols });
      client.send({ type: 'connection_init', payload: { Authorization: 'Bearer bad' } });
      await client.next();
      client.send(subscribe('2', create));
      const { payload } = await client.next();
      const { errors } = payload as { errors: { extensions: unknown }[] };
      assert.deepEqual(errors[0]?.extensions, { code: 'UNAUTHENTICATED' });
      await client.close();
    });
  });
});
