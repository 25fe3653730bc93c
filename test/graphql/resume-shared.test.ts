/** Subscribers that resume, together with others: ids of events, groups, and their pace. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type GraphqlEndpoint, startEndpoint } from '../support/graphql-endpoint.ts';
import { times } from '../support/lists.ts';
import { addPost, after, comment, nextOf, read, toQuery } from '../support/resuming.ts';
import { type Told, toWord } from '../support/resuming.ts';
import { startServer } from '../support/server.ts';
import { askEvents, completeEvent, nextEvent } from '../support/sse-client.ts';
import { connectReady, type HandClient, subscribe } from '../support/ws-clients.ts';

describe('a browser that connects again', () => {
  test('sends the last id, which counts more than the argument; every event has its id', async (t) => {
    const server = await startServer(t);
    const a = await addPost(server);
    const ids: string[] = [];
    for (const at of times(5)) ids.push(await comment(server, a, `${at}`));
    // Whatever fields are asked for.
    const query = `subscription { commentAdded(after: "${ids[0]}") { content } }`;
    const first = await askEvents(server, query);
    const hear = async (reader: typeof first, expected: readonly number[]): Promise<void> => {
      for (const at of expected) {
        const { id, told } = await nextOf(reader);
        assert.deepEqual([id, toWord(told)], [ids[at], `${at}`]);
      }
    };
    await hear(first, [1, 2]);
    first.leave();
    const again = await askEvents(server, query, { 'Last-Event-ID': ids[2] ?? '' });
    ids.push(await comment(server, a, '5'));
    await hear(again, [3, 4, 5]);
    // Also where the URL has no argument; a GET as a browser sends it.
    const url = `/graphql?query=${encodeURIComponent('subscription { commentAdded { content } }')}`;
    // Polyfills put the id there.
    for (const [target, own] of [
      [url, { 'Last-Event-ID': ids[4] ?? '' }],
      [`${url}&lastEventId=${ids[4]}`, {}],
      [`${url}&lastEventId=${ids[1]}`, { 'Last-Event-ID': ids[4] ?? '' }],
    ] as const) {
      const headers = { Accept: 'text/event-stream', ...own };
      const stream = await server.fetch(target, { headers });
      let text = '';
      for await (const chunk of stream.body ?? []) {
        text += Buffer.from(chunk).toString();
        if (text.includes('data:')) break;
      }
      const event = nextEvent({ data: { commentAdded: { content: '5' } } });
      assert.equal(text, `:\n\nid: ${ids[5]}\n${event}\n\n`);
    }
  });

  test('is told NOT_FOUND, and that it is complete, for an id of nothing', async (t) => {
    const server = await startServer(t);
    // Of a query the last id changes nothing.
    const asked = await askEvents(server, '{ __typename }', { 'Last-Event-ID': 'gone' });
    assert.equal(await asked.next(), nextEvent({ data: { __typename: 'Query' } }));
    const reader = await askEvents(server, toQuery(''), { 'Last-Event-ID': 'gone' });
    assert.equal(await reader.next(), ':');
    const event = await reader.next();
    // It connects again without an id, and does not ask for ever.
    assert.match(event ?? '', /^id:\nevent: next\ndata: \{"errors":.*"NOT_FOUND"/);
    assert.equal(await reader.next(), completeEvent);
    assert.equal(await reader.next(), undefined);
  });
});

describe('subscribers that differ in after alone', () => {
  async function last(endpoint: GraphqlEndpoint, content: string): Promise<string> {
    endpoint.comment(content);
    const { store } = endpoint;
    const { records } = await store.comments.ofPost(endpoint.postId).read();
    return records.at(-1)?.id ?? '';
  }
  const textOf = async (client: HandClient): Promise<string> =>
    toWord((await client.next()).payload as Told);

  test('share one group once they are live, also with those without it', async (t) => {
    const endpoint = await startEndpoint(t);
    const { postId, subscriptions } = endpoint;
    const ids = [await last(endpoint, 'a'), await last(endpoint, 'b'), await last(endpoint, 'c')];
    const query = `subscription ($p: String, $last: String) {
      commentAdded(postId: $p, after: $last) { id content }
    }`;
    const literal = `subscription { commentAdded(postId: "x", after: "${ids[0]}") { id content } }`;
    const plain = 'subscription($p: String) { commentAdded(postId: $p) { id, content } }';
    const clients: HandClient[] = [];
    for (const [text, variables, missed] of [
      [query, { p: postId, last: ids[0] }, ['b', 'c']],
      [query, { p: postId, last: ids[1] }, ['c']],
      [query, { p: postId, last: null }, []],
      [query, { p: postId }, []],
      [plain, { p: postId }, []],
      [literal, {}, []],
    ] as const) {
      const client = await connectReady(endpoint.port);
      t.after(() => client.socket.terminate());
      client.send(subscribe('1', text, { variables }));
      for (const word of missed) assert.equal(await textOf(client), word);
      await client.settle();
      clients.push(client);
    }
    assert.deepEqual(subscriptions.count(), { groups: 1, subscribers: 6 });
    endpoint.comment('d');
    for (const client of clients.slice(0, 5)) assert.equal(await textOf(client), 'd');
  });

  test('are refused where variables do not fit, also beside a group that runs', async (t) => {
    const endpoint = await startEndpoint(t);
    const client = await connectReady(endpoint.port);
    t.after(() => client.socket.terminate());
    const query = 'subscription ($last: String) { commentAdded(after: $last) { content } }';
    client.send(subscribe('good', query));
    client.send(subscribe('bad', query, { variables: { last: 5 } }));
    const { id, type, payload } = await client.next();
    assert.deepEqual([id, type], ['bad', 'error']);
    assert.match(JSON.stringify(payload), /BAD_USER_INPUT/);
    endpoint.comment('a');
    assert.equal((await client.next()).id, 'good');
  });

  test('in fragments and beside other operations: what is asked for is what is resumed', async (t) => {
    const endpoint = await startEndpoint(t);
    const [first, second] = [await last(endpoint, 'a'), await last(endpoint, 'b')];
    endpoint.comment('c');
    const query = `query Q($x: ID) { allPosts(after: $x) { id } }
      subscription A($x: String) { ...F }
      subscription B { ... on Subscription { commentAdded(after: "${second}") { content } } }
      fragment F on Subscription { commentAdded(after: $x) { content } }`;
    const client = await connectReady(endpoint.port);
    t.after(() => client.socket.terminate());
    client.send(subscribe('A', query, { operationName: 'A', variables: { x: first } }));
    assert.deepEqual(await read(() => textOf(client), 2), ['b', 'c']);
    client.send(subscribe('B', query, { operationName: 'B' }));
    assert.equal(await textOf(client), 'c');
  });
});

describe('a backlog', () => {
  test('of any length is read at the pace of its client, and holds nobody else', async (t) => {
    const endpoint = await startEndpoint(t);
    const { comments } = endpoint.store;
    const length = 3_500;
    const filler = 'x'.repeat(4_096);
    endpoint.comment('first');
    const [first] = (await comments.ofPost(endpoint.postId).read()).records.slice(-1);
    for (const at of times(length)) endpoint.comment(`${at} ${filler}`);
    const query = toQuery(after(first?.id));
    const slow = await askEvents(endpoint, query);
    slow.response.pause();
    // The other one reads all of it meanwhile.
    const all = async (reader: typeof slow): Promise<void> => {
      for (const at of times(length)) {
        const { told } = await nextOf(reader);
        assert.ok(told.data?.commentAdded.content.startsWith(`${at} `), `${at}`);
      }
    };
    await all(await askEvents(endpoint, query));
    assert.ok(endpoint.pool.bytes < 1_000_000, `${endpoint.pool.bytes} bytes`);
    endpoint.comment(`${length} live`);
    await all(slow);
    assert.equal((await nextOf(slow)).told.data?.commentAdded.content, `${length} live`);
    assert.deepEqual(endpoint.dropped, []);
  });
});
