import assert from 'node:assert/strict';
import { it } from 'node:test';
import * as fc from 'fast-check';
import { serialize } from '../../dist/graphql/http/serialize.js';
import { inSlices, sliceLength } from '../../dist/graphql/slices.js';
import { dataOf, startGraphql } from '../support/graphql.js';
import { startServer } from '../support/server.js';

it('a short list stays what it is, a long one keeps its records and their order', async () => {
  const short = Array.from({ length: sliceLength }, (_, index) => index);
  assert.equal(inSlices(short), short);
  const long = Array.from({ length: 3 * sliceLength + 1 }, (_, index) => index);
  assert.deepEqual(await Promise.all(inSlices(long).map(async (record) => record)), long);
});

it('the event loop has a turn after each slice', async () => {
  const long = Array.from({ length: 4 * sliceLength }, (_, index) => index);
  let turns = 0;
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const seen = await Promise.all(inSlices(long).map(async (record) => [await record, turns]));
  clearImmediate(next);
  const turnsOfSlice = seen.filter((_, index) => index % sliceLength === 0).map(([, turn]) => turn);
  assert.equal(new Set(turnsOfSlice).size, 4);
});

it('a result becomes the text of JSON.stringify, however long its lists are', async () => {
  const list = fc.array(fc.jsonValue(), { minLength: 0, maxLength: 3 });
  const data = fc.dictionary(fc.string(), fc.oneof(list, fc.jsonValue()));
  await fc.assert(
    fc.asyncProperty(data, fc.jsonValue(), fc.boolean(), async (fields, item, isFirst) => {
      const long = { long: Array.from({ length: 2 * sliceLength + 7 }, () => item) };
      const result = { data: isFirst ? { ...long, ...fields } : { ...fields, ...long } };
      assert.equal((await serialize(result)).toString(), JSON.stringify(result));
    }),
    { numRuns: 30 },
  );
  const errors = [{ message: 'x', extensions: { code: 'NOT_FOUND' } }] as const;
  for (const result of [{ data: null, errors }, { errors }, { data: {}, extensions: { a: 1 } }]) {
    assert.equal((await serialize(result)).toString(), JSON.stringify(result));
  }
});

it('two thousand posts come whole and in order', async (context) => {
  const server = await startServer(context, { env: { DEMO_DATA: 'false' } });
  const create = 'mutation($i: CreatePostInput!) { createPost(createPostInput: $i) }';
  const ids: unknown[] = [];
  for (let batch = 0; batch < 100; batch += 1) {
    const operations = Array.from({ length: 20 }, (_, index) => {
      const title = `post ${batch * 20 + index}`;
      return { query: create, variables: { i: { title, content: 'text' } } };
    });
    const results = (await (await server.send('POST', '/graphql', operations)).json()) as {
      data: { createPost: string };
    }[];
    ids.unshift(...results.map(({ data }) => data.createPost).toReversed());
  }
  const query = '{ allPosts { id author { name } comments { id } } }';
  const answer = await server.send('POST', '/graphql', { query });
  const { data } = (await answer.json()) as { data: { allPosts: { id: string }[] } };
  assert.deepEqual(
    data.allPosts,
    ids.map((id) => ({ id, author: null, comments: [] })),
  );
});

it('the query of the specification runs over 10,000 posts with five comments each', async () => {
  const { run } = startGraphql({ posts: 10_000, authors: 10, comments: 5 });
  const query = '{ allPosts { id title content author { name } comments { content } } }';
  assert.equal((dataOf(await run(query))['allPosts'] as unknown[]).length, 10_000);
});
