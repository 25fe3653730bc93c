import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../support/server.js';

interface Result {
  readonly data?: Record<string, unknown>;
  readonly errors?: readonly unknown[];
}

describe('answers that are kept', () => {
  let server: TestServer;
  const endings: (() => Promise<void>)[] = [];
  before(async () => {
    server = await startServer({ after: (ending) => endings.push(ending) });
  });
  after(async () => {
    for (const ending of endings) await ending();
  });

  const count = { query: '{ allPosts { id } }' };
  const create = {
    query: 'mutation { createPost(createPostInput: { title: "a", content: "b" }) }',
  };
  const ask = async (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    server.fetch('/graphql', {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', ...headers },
    });
  const askFor = async (body: unknown): Promise<Result> =>
    (await (await ask(body)).json()) as Result;

  it('are never those of a mutation: the same one runs each time', async () => {
    const first = await askFor(create);
    const second = await askFor(create);
    assert.notEqual(first.data?.['createPost'], second.data?.['createPost']);
    const batches = [await ask([create]), await ask([create])];
    const [one, two] = await Promise.all(batches.map((response) => response.text()));
    assert.notEqual(one, two);
  });

  it('are kept apart by media type', async () => {
    for (let again = 0; again < 2; again += 1) {
      for (const type of ['application/json', 'application/graphql-response+json']) {
        const response = await ask(count, { Accept: type });
        assert.equal(response.headers.get('content-type'), `${type}; charset=utf-8`);
      }
    }
  });

  it('cannot be reached by a body that looks like the key of another', async () => {
    await server.fetch('/posts');
    for (const text of ['GET /posts', '/posts', 'POST application/json {}']) {
      const headers = { 'Content-Type': 'application/json' };
      const response = await server.fetch('/graphql', { method: 'POST', body: text, headers });
      assert.equal(response.status, 400);
    }
  });

  it('are not kept for errors', async () => {
    const body = { query: '{ nothingOfThisName }' };
    assert.deepEqual(await askFor(body), await askFor(body));
    assert.ok((await askFor(body)).errors);
  });
});

it('without a cache the responses are the same', async (context) => {
  const server = await startServer(context, { env: { ANSWER_CACHE_BYTES_MAX: '0' } });
  const first = await (await server.fetch('/posts')).text();
  assert.equal(await (await server.fetch('/posts')).text(), first);
  await server.send('POST', '/posts', { title: 'new', content: 'b' });
  assert.notEqual(await (await server.fetch('/posts')).text(), first);
});
