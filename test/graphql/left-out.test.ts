/** Lists that leave out what does not exist for the reader take turns, however little they show (R47). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Comment } from '../../dist/store/model.js';
import type { List, Page, Store } from '../../dist/store/store.js';
import { dataOf, startGraphql, type TestGraphql } from '../support/graphql.ts';

const env = { REQUIRE_AUTH: 'owners' };

/** The store answers in promises, as databases do. */
function inPromises(store: Store): Store {
  const later = ({ records, next }: Page<Comment>): Page<Comment> => ({
    records,
    next: next && (async () => later(await next())),
  });
  const { all } = store.comments;
  const slow: List<Comment> = { read: async (range) => later(await all.read(range)) };
  return { ...store, keepsObjects: false, comments: { ...store.comments, all: slow } };
}

/** Runs the query; `turns`: iterations of the event loop until it has ended, `bytes`: most memory. */
async function watch({ run, pool }: TestGraphql, query: string) {
  let [turns, bytes] = [0, 0];
  const tick = (): void => {
    turns += 1;
    bytes = Math.max(bytes, pool.bytes);
    ticking = setImmediate(tick);
  };
  let ticking = setImmediate(tick);
  const result = await run(query);
  clearImmediate(ticking);
  return { data: dataOf(result), turns, bytes };
}

for (const [where, wrap] of [
  ['in memory', (store: Store) => store],
  ['read in promises', inPromises],
] as const) {
  test(`comments on drafts of others hold up nobody, ${where}`, async () => {
    const graphql = startGraphql({ posts: 1, comments: 20_000, env, wrap });
    for (const query of ['{ comments { id } }', '{ comments(first: 1) { id } }']) {
      const { data, turns } = await watch(graphql, query);
      assert.deepEqual(data, { comments: [] });
      assert.ok(turns >= 20_000 / 250 - 1, `${query}: ${turns}`);
    }
  });
}

test('what such a list has read is counted while it waits', async () => {
  const graphql = startGraphql({ posts: 2, comments: 0, env });
  const [hidden = assert.fail(), shown = assert.fail()] = graphql.posts;
  await graphql.store.posts.update(shown.id, { status: 'PUBLISHED' }, {});
  for (let count = 0; count < 1_500; count += 1) {
    for (const { id } of [hidden, shown]) await graphql.store.comments.add(id, 'x');
  }
  const { data, bytes } = await watch(graphql, '{ comments { id } }');
  assert.equal((data['comments'] as unknown[]).length, 1_500);
  assert.ok(bytes >= 1_000 * 128, `${bytes}`);
});
