/** Responses that are kept: none is older than the last acknowledged write, or that of another. */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { times } from '../support/lists.ts';
import { startServer, type TestServer } from '../support/server.ts';

const post = { title: 'a', content: 'b' };

/** The body of a request to GraphQL: what it is told. */
async function ask(server: TestServer, body: string, accept = '*/*'): Promise<string> {
  const headers = { 'Content-Type': 'application/json', Accept: accept };
  const response = await server.fetch('/graphql', { method: 'POST', body, headers });
  return `${response.status} ${response.headers.get('content-type')} ${await response.text()}`;
}

/** How many requests to GraphQL were answered from the cache. */
async function countCached(server: TestServer): Promise<number> {
  const name = /^inkwell_graphql_cached_responses_total\S* (\d+)$/m;
  return Number(name.exec(await server.metrics())?.[1] ?? 0);
}

const toQuery = (query: string): string => JSON.stringify({ query });

it('what was read of very many lists is told of a write to one of them', async (t) => {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  const posts: string[] = [];
  for (const _ of times(300)) posts.push(await server.make('/posts', post));
  const query = toQuery('{ allPosts(first: 900) { comments(first: 1) { content } } }');
  for (const each of [posts[0], posts[150], posts[299]]) {
    const before = await ask(server, query);
    assert.equal(await ask(server, query), before);
    await server.make(`${each}/comments`, { content: 'new' });
    assert.notEqual(await ask(server, query), before, each);
  }
});

it('a mutation runs each time, and responses are kept apart by media type and door', async (t) => {
  const server = await startServer(t);
  const create = toQuery('mutation { createPost(createPostInput: { title: "a", content: "b" }) }');
  for (const body of [create, `[${create}]`]) {
    assert.notEqual(await ask(server, body), await ask(server, body));
  }
  // A key is read where the response is kept, too.
  const query = { query: '{ allPosts { id } }' };
  for (const [status, headers] of [[200], [200], [400, { 'Idempotency-Key': '""' }]] as const) {
    assert.equal((await server.send('POST', '/graphql', query, headers)).status, status);
  }
  for (const type of ['json', 'graphql-response+json', 'json', 'graphql-response+json']) {
    const found = await ask(server, toQuery('{ allPosts { id } }'), `application/${type}`);
    assert.ok(found.startsWith(`200 application/${type}; charset=utf-8 `), type);
  }
  await server.fetch('/posts');
  for (const text of ['GET /posts', '"/posts"', 'POST application/json {}']) {
    assert.match(await ask(server, text), /^400 /, text);
  }
});

it('a query in a body of 65,536 bytes is kept, and in a longer one not', async (t) => {
  const server = await startServer(t, { env: { ADMIN_PORT: '0' } });
  for (const length of [65_537, 65_536]) {
    const body = toQuery('{ allPosts { id } }').padEnd(length, ' ');
    for (const _ of [1, 2]) assert.match(await ask(server, body), /^200 /);
    assert.equal(await countCached(server), length === 65_536 ? 1 : 0);
  }
  // What is refused may be answered the next time.
  for (const _ of [1, 2]) assert.match(await ask(server, '{'), /^400 /);
  assert.equal(await countCached(server), 1);
});

it('in memory a response may take half of what the caches take together', async (t) => {
  const env = { RESPONSE_CACHE_BYTES_MAX: '1000000', ADMIN_PORT: '0', DEMO_DATA: 'false' };
  const server = await startServer(t, { env });
  // The first response is cached; that of both posts is too long.
  for (const length of [400_000, 200_000]) {
    await server.make('/posts', { title: 'a', content: 'x'.repeat(length) });
    for (const _ of [1, 2]) await ask(server, toQuery('{ allPosts { content } }'));
    assert.equal(await countCached(server), 1, `after ${length} more`);
  }
});
