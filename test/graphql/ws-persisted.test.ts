import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { useEndpoint } from '../support/graphql-endpoint.js';
import { connectReady } from '../support/ws-clients.js';

const query = '{ __typename }';
const sha256Hash = createHash('sha256').update(query).digest('hex');
const extensions = { persistedQuery: { version: 1, sha256Hash } };
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
      client.send({ id: '1', type: verb, payload: { extensions } });
      const { type, payload } = await client.next();
      assert.equal(type, 'error');
      assert.match(JSON.stringify(payload), /"PersistedQueryNotFound".*PERSISTED_QUERY_NOT_FOUND/);
      for (const text of [query, undefined, null]) {
        client.send({ id: '1', type: verb, payload: { query: text, extensions } });
        assert.deepEqual(await client.next(), { id: '1', type: result, payload: data });
        assert.equal((await client.next()).type, 'complete');
      }
      await client.close();
    });

    test('a hash that is not that of the text is refused, and the socket stays open', async () => {
      const client = await connectReady(endpoint().port, { protocols: [protocol] });
      client.send({ id: '1', type: verb, payload: { query: '{ allPosts { id } }', extensions } });
      assert.match(JSON.stringify((await client.next()).payload), /BAD_USER_INPUT/);
      client.send({ id: '2', type: verb, payload: { query } });
      assert.equal((await client.next()).type, result);
      await client.close();
    });
  });
}
