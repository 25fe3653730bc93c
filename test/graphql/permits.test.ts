/** How large operations go on when their store answers many of them at once. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { createPermits } from '../../dist/graphql/permits.js';
import type { List, Store } from '../../dist/store/store.js';
import { dataOf, startGraphql } from '../support/graphql.ts';
import { times } from '../support/lists.ts';

test('permits are given one in an iteration of the event loop, and so many at a time', async () => {
  const permits = createPermits(2);
  let given = 0;
  for (let count = 0; count < 5; count += 1) void permits.acquire().then(() => (given += 1));
  await Promise.resolve(); // the first asks for its iteration
  const seen: number[] = [];
  for (let iteration = 0; iteration < 4; iteration += 1) {
    await nextIteration();
    seen.push(given);
  }
  assert.deepEqual(seen, [1, 2, 2, 2]);
  for (const expected of [3, 4, 5]) {
    permits.release();
    await nextIteration();
    await nextIteration();
    assert.equal(given, expected, `${expected}`);
  }
});

/** A store that answers all lists of posts at the same moment. */
function answeringAtOnce(answer: Promise<void>) {
  return (memory: Store): Store => {
    const all: List<never> = {
      ...(memory.posts.all as List<never>),
      read: async (range) => {
        await answer;
        return memory.posts.all.read(range) as ReturnType<List<never>['read']>;
      },
    };
    return { ...memory, posts: { ...memory.posts, all } };
  };
}

for (const [posts, expected] of [
  [300, 6],
  [10, 1],
] as const) {
  test(`six operations of ${posts} records end in ${expected} iterations`, async () => {
    let send = (): void => undefined;
    const answer = new Promise<void>((resolve) => (send = resolve));
    const graphql = startGraphql({ posts, wrap: answeringAtOnce(answer) });
    let iteration = 0;
    const ended: number[] = [];
    const operations = Array.from({ length: 6 }, async () => {
      await graphql.run('{ allPosts { id } }');
      ended.push(iteration);
    });
    await nextIteration();
    send();
    for (; ended.length < 6 && iteration < 100; iteration += 1) await nextIteration();
    await Promise.all(operations);
    assert.equal(new Set(ended).size, expected, ended.join());
  });
}

test('four operations with many records go on at a time, and read 200 lists each', async () => {
  let send = (): void => undefined;
  const answer = new Promise<void>((resolve) => (send = resolve));
  let asked = 0;
  const graphql = startGraphql({ posts: 300, comments: 1, wrap: withLateComments });
  function withLateComments(memory: Store): Store {
    const ofPost: Store['comments']['ofPost'] = (id) => {
      const list = memory.comments.ofPost(id);
      const read: typeof list.read = async (range) => {
        asked += 1;
        await answer;
        return list.read(range);
      };
      return { ...list, read };
    };
    const { all } = memory.posts;
    const later: typeof all = { ...all, read: async (range) => all.read(range) };
    return {
      ...memory,
      keepsObjects: false,
      posts: { ...memory.posts, all: later },
      comments: { ...memory.comments, ofPost },
    };
  }
  const results = times(6).map(() => graphql.run('{ allPosts { comments { id } } }'));
  for (let iteration = 0; iteration < 50; iteration += 1) await nextIteration();
  assert.equal(asked, 800);
  send();
  for (const [at, result] of (await Promise.all(results)).entries())
    assert.equal(result.errors, undefined, `result ${at}`);
  assert.equal(asked, 1_800);
});

test('an operation that fails early gives its permit back, and its memory', async () => {
  // The first list fails while the second is still being read.
  let send = (): void => undefined;
  const answer = new Promise<void>((resolve) => (send = resolve));
  const graphql = startGraphql({ posts: 300, wrap: answeringSecondLate(answer) });
  const failed = Array.from({ length: 5 }, () =>
    graphql.run('{ a: allPosts { id } b: allPosts { id } }'),
  );
  for (const [at, result] of (await Promise.all(failed)).entries())
    assert.notEqual(result.errors, undefined, `result ${at}`);
  send();
  for (let iteration = 0; iteration < 20; iteration += 1) await nextIteration();
  assert.equal(graphql.pool.bytes, 0);
  const result = await graphql.run('{ allPosts { id } }');
  assert.equal((dataOf(result)['allPosts'] as unknown[]).length, 300);
});

/** Every second list of posts is read after `answer`; each other one fails at once. */
function answeringSecondLate(answer: Promise<void>) {
  let asked = 0;
  return (memory: Store): Store => {
    const all: List<never> = {
      ...(memory.posts.all as List<never>),
      read: async (range) => {
        asked += 1;
        if (asked <= 10 && asked % 2 === 1) throw new Error('The store failed.');
        await answer;
        return memory.posts.all.read(range) as ReturnType<List<never>['read']>;
      },
    };
    return { ...memory, keepsObjects: false, posts: { ...memory.posts, all } };
  };
}
