/** Clients of both protocols: the library's own, whose account they use, hashes, and silence. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { startEndpoint, useEndpoint } from '../support/graphql-endpoint.ts';
import { connectByHand, connectReady, modernClient, subscribe } from '../support/ws-clients.ts';
import { until } from '../support/until.ts';

const subscription = 'subscription { commentAdded { content postId } }';
const typename = '{ __typename }';

describe('clients of graphql-transport-ws', () => {
  const endpoint = useEndpoint();

  test("the library's own sees errors, subscribes and stops", async () => {
    const { client, run } = modernClient(endpoint().port);
    await assert.rejects(run('{ nothing }'), (errors: unknown) => Array.isArray(errors));
    const events = client.iterate({ query: subscription });
    const { subscribers: before } = endpoint().subscriptions.count();
    const first = events.next();
    await until('a subscriber', () => endpoint().subscriptions.count().subscribers !== before);
    endpoint().comment('for the client');
    const { value } = (await first) as { value: { data: unknown } };
    const commentAdded = { content: 'for the client', postId: endpoint().postId };
    assert.deepEqual(value.data, { commentAdded });
    await events.return?.();
    await client.dispose();
  });

  describe('the viewer', () => {
    const create = 'mutation { createPost(createPostInput: {title: "t", content: "c"}) }';

    test('comes from the upgrade request, and is asked for only where it is needed', async () => {
      const headers = { Authorization: 'Bearer header' };
      const client = await connectReady(endpoint().port, { headers });
      const asked = endpoint().authorizations.length;
      await client.ask(subscribe('1', typename));
      await client.next();
      assert.equal(endpoint().authorizations.length, asked);
      await client.ask(subscribe('2', create));
      assert.equal(endpoint().authorizations.at(-1), 'Bearer header');
    });

    test('comes from the payload of connection_init before the header', async () => {
      const headers = { Authorization: 'Bearer header' };
      const client = await connectByHand(endpoint().port, { headers });
      await client.ask({ type: 'connection_init', payload: { Authorization: 'Bearer payload' } });
      await client.ask(subscribe('2', create));
      assert.equal(endpoint().authorizations.at(-1), 'Bearer payload');
    });
  });
});

const sha256Hash = createHash('sha256').update(typename).digest('hex');
const extensions = { persistedQuery: { version: 1, sha256Hash } };
/** The hash of no text. */
const others = { persistedQuery: { version: 1, sha256Hash: 'ab'.repeat(32) } };
const data = { data: { __typename: 'Query' } };

for (const [verb, protocol, result] of [
  ['subscribe', 'graphql-transport-ws', 'next'],
  ['start', 'graphql-ws', 'data'],
  ['subscribe', 'graphql-ws', 'next'],
] as const) {
  describe(`persisted queries by ${verb} over ${protocol}`, () => {
    const endpoint = useEndpoint();

    test('a hash is unknown at first, then sent with its text, then enough', async () => {
      const client = await connectReady(endpoint().port, { protocols: [protocol] });
      const ask = async (payload: object) => client.ask({ id: '1', type: verb, payload });
      const { type, payload } = await ask({ extensions });
      assert.equal(type, 'error');
      assert.match(JSON.stringify(payload), /"PersistedQueryNotFound".*PERSISTED_QUERY_NOT_FOUND/);
      for (const query of [typename, undefined, null, '']) {
        const answer = await ask({ query, extensions });
        assert.deepEqual(answer, { id: '1', type: result, payload: data }, JSON.stringify(query));
        assert.equal((await client.next()).type, 'complete', JSON.stringify(query));
      }
      // One that is not that of the text is refused, and keeps nothing.
      const { payload: refused } = await ask({ query: typename, extensions: others });
      assert.match(JSON.stringify(refused), /BAD_USER_INPUT/);
      const { payload: unknown } = await ask({ extensions: others });
      assert.match(JSON.stringify(unknown), /PERSISTED_QUERY_NOT_FOUND/);
    });
  });
}

describe('a client that says nothing', { concurrency: true }, () => {
  for (const protocols of [['graphql-transport-ws'], ['graphql-ws'], []]) {
    test(`as ${protocols.join()} without connection_init closes with 4408`, async (t) => {
      const client = await connectByHand(startEndpoint(t), { protocols });
      // Though pings come.
      const isNewer = protocols[0] === 'graphql-transport-ws';
      if (isNewer) assert.deepEqual(await client.ask({ type: 'ping' }), { type: 'pong' });
      assert.equal((await client.closed).code, 4408);
      assert.deepEqual(client.received, []);
    });
  }

  for (const protocols of [['graphql-ws'], []]) {
    test(`as ${protocols.join()}: ka comes at an interval, and not right after the acknowledgement`, async (t) => {
      const { port } = await startEndpoint(t, { constants: { wsPingSeconds: 1 } });
      const often = await connectReady(port, { protocols, keepAlives: true });
      assert.deepEqual(await often.next(), { type: 'ka' });
      // However soon after the acknowledgement the first interval ends, it brings none.
      const late = await connectReady(port, { protocols, keepAlives: true });
      assert.deepEqual(await often.next(), { type: 'ka' });
      assert.deepEqual(await late.ask({ type: 'ping' }), { type: 'pong' });
      assert.deepEqual(await late.next(), { type: 'ka' });
    });
  }
});
