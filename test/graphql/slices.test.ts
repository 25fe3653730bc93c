import assert from 'node:assert/strict';
import { it } from 'node:test';
import { sliceLength, Slices } from '../../dist/graphql/slices.js';
import { createScheduler } from '../../dist/scheduler.js';
import { dataOf, startGraphql } from '../support/graphql.js';
import { startServer } from '../support/server.js';
import { isLong } from '../support/long.js';

async function all<T>(list: readonly T[]): Promise<readonly T[]> {
  const records = await new Slices(createScheduler()).of(list, { fields: 1 });
  return Promise.all(records.map(async (record) => record));
}

it('a short list stays what it is, a long one keeps its records and their order', async () => {
  const short = Array.from({ length: sliceLength }, (_, index) => index);
  assert.equal(new Slices(createScheduler()).of(short, { fields: 1 }), short);
  const long = Array.from({ length: 3 * sliceLength + 1 }, (_, index) => index);
  assert.deepEqual(await all(long), long);
});

it('the event loop has a turn after each slice', async () => {
  const long = Array.from({ length: 4 * sliceLength }, (_, index) => index);
  let turns = 0;
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const records = await new Slices(createScheduler()).of(long, { fields: 1 });
  const seen = await Promise.all(records.map(async (record) => [await record, turns] as const));
  clearImmediate(next);
  const turnsOfSlice = seen.filter((_, index) => index % sliceLength === 0).map(([, turn]) => turn);
  assert.equal(new Set(turnsOfSlice).size, 4);
});

it('records without related ones are sliced by their fields', async () => {
  const list = Array.from({ length: 1_000 }, (_, index) => index);
  const slice = (fieldsOfRecord: number) =>
    new Slices(createScheduler()).of(list, { fields: 1_000 * fieldsOfRecord, areLeaves: true });
  assert.equal(slice(1), list);
  for (const [fieldsOfRecord, first] of [
    [9, 400],
    [500, sliceLength],
  ] as const) {
    const records = await slice(fieldsOfRecord);
    assert.equal(
      records.findIndex((record) => record instanceof Promise),
      first,
    );
    assert.deepEqual(await Promise.all(records.map(async (record) => record)), list);
  }
});

it('an operation that has had its part of a turn goes on in a later one', async () => {
  const slices = new Slices(createScheduler());
  assert.deepEqual(slices.of([1], { fields: 30_000 }), [1]);
  const late = slices.of([2], { fields: 30_000 });
  const later = slices.of([3], { fields: 1 });
  assert.ok(late instanceof Promise && later instanceof Promise);
  assert.deepEqual([await late, await later], [[2], [3]]);
});

it('many posts come whole and in order', async (context) => {
  const server = await startServer(context, { env: { DEMO_DATA: 'false' } });
  const create = 'mutation($i: CreatePostInput!) { createPost(createPostInput: $i) }';
  const ids: unknown[] = [];
  for (let batch = 0; batch < (isLong ? 100 : 20); batch += 1) {
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
  const response = await server.send('POST', '/graphql', { query });
  const { data } = (await response.json()) as { data: { allPosts: { id: string }[] } };
  assert.deepEqual(
    data.allPosts,
    ids.map((id) => ({ id, author: null, comments: [] })),
  );
});

it('the query of the specification runs over all posts with five comments each', async () => {
  const posts = isLong ? 10_000 : 1_000;
  const { run } = startGraphql({ posts, authors: 10, comments: 5 });
  const query = '{ allPosts { id title content author { name } comments { content } } }';
  assert.equal((dataOf(await run(query))['allPosts'] as unknown[]).length, posts);
});
