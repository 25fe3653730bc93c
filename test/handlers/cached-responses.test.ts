/** Responses that are kept: none is older than the last acknowledged write, or that of another. */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { times } from '../support/lists.ts';
import { startServer, type TestServer } from '../support/server.ts';

/** By GET, or as the body of a request to GraphQL. */
async function ask(server: TestServer, asked: string, accept = '*/*'): Promise<string> {
  const headers = { 'Content-Type': 'application/json', Accept: accept };
  const response = await (asked.startsWith('/')
    ? server.fetch(asked)
    : server.fetch('/graphql', { method: 'POST', body: asked, headers }));
  const about = [response.headers.get('content-type'), response.headers.get('link')];
  return [response.status, ...about, await response.text()].join(' ');
}

/** How many requests to GraphQL were answered from the cache. */
async function countCached(server: TestServer): Promise<number> {
  const metrics = await server.metrics();
  const [, count] = /^inkwell_graphql_cached_responses_total\S* (\d+)$/m.exec(metrics) ?? [];
  return Number(count ?? 0);
}

const toQuery = (query: string): string => JSON.stringify({ query });

async function locationOf(response: Promise<Response>): Promise<string> {
  return new URL((await response).headers.get('location') ?? '', 'http://a').pathname;
}

it('what was read of very many lists is told of a write to one of them', async (t) => {
  const server = await startServer(t, { env: { DEMO_DATA: 'false' } });
  const posts: string[] = [];
  for (const _ of times(300))
    posts.push(await locationOf(server.send('POST', '/posts', { title: 'a', content: 'b' })));
  const query = toQuery('{ allPosts(first: 900) { comments(first: 1) { content } } }');
  for (const post of [posts[0], posts[150], posts[299]]) {
    const before = await ask(server, query);
    assert.equal(await ask(server, query), before);
    await server.send('POST', `${post}/comments`, { content: 'new' });
    assert.notEqual(await ask(server, query), before, post);
  }
});

it('a mutation runs each time, and responses are kept apart by media type', async (t) => {
  const server = await startServer(t);
  const create = toQuery('mutation { createPost(createPostInput: { title: "a", content: "b" }) }');
  for (const [at, body] of [create, `[${create}]`].entries()) {
    assert.notEqual(await ask(server, body), await ask(server, body), `body ${at}`);
  }
  for (const type of ['json', 'graphql-response+json', 'json', 'graphql-response+json']) {
    const found = await ask(server, toQuery('{ allPosts { id } }'), `application/${type}`);
    assert.match(
      found,
      new RegExp(`^200 application/${type.replace('+', '\\+')}; charset=utf-8 `),
      type,
    );
  }
});

it('a body that looks like the key of a kept response is none', async (t) => {
  const server = await startServer(t);
  await server.fetch('/posts');
  for (const text of ['GET /posts', '"/posts"', 'POST application/json {}']) {
    assert.match(await ask(server, text), /^400 /, text);
  }
});

for (const [length, cached] of [
  [65_536, 1],
  [65_537, 0],
] as const) {
  it(`a query in a body of ${length} bytes is ${cached === 1 ? '' : 'not '}kept`, async (t) => {
    const server = await startServer(t, { env: { ADMIN_PORT: '0' } });
    const body = JSON.stringify({ query: '{ allPosts { id } }' }).padEnd(length, ' ');
    const headers = { 'Content-Type': 'application/json' };
    for (const _ of [1, 2]) {
      assert.equal((await server.fetch('/graphql', { method: 'POST', headers, body })).status, 200);
    }
    assert.equal(await countCached(server), cached);
  });
}

it('in memory a response may take half of what the caches take together', async (t) => {
  const env = { RESPONSE_CACHE_BYTES_MAX: '1000000', ADMIN_PORT: '0', DEMO_DATA: 'false' };
  const server = await startServer(t, { env });
  // The first response is cached; that of both posts is too long.
  for (const length of [400_000, 200_000]) {
    const post = { title: 'a', content: 'x'.repeat(length) };
    assert.equal((await server.send('POST', '/posts', post)).status, 201);
    for (const _ of [1, 2]) await ask(server, toQuery('{ allPosts { content } }'));
    assert.equal(await countCached(server), 1, `after ${length} more`);
  }
});
