/** What the store in memory holds at most. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryStore } from '../../dist/store/memory.js';
import { initialData } from '../../dist/store/seed.js';
import type { RunInTurn } from '../../dist/scheduler.js';
import type { Store } from '../../dist/store/store.js';
import { changing, toDraft } from '../support/article-texts.ts';
import { withCode } from '../support/errors.ts';
import { allOf, times } from '../support/lists.ts';
import { driverOptions } from '../support/driver-options.ts';
import { made } from '../support/made.ts';

const empty = { authors: [], accounts: [], posts: [], comments: [], todos: [], articles: [] };

const openStore = (bytesMax: number, initial = empty as ReturnType<typeof initialData>): Store =>
  createMemoryStore(driverOptions({ initial, bytesMax }));

const areas = ['posts', 'comments', 'todos', 'articles'] as const;
const isFull = withCode('storage_full');
const large = 'x'.repeat(5_000);

test('beyond its bytes nothing is stored, by no endpoint', async () => {
  const { posts, comments, todos, articles, ...store } = openStore(10_000);
  const post = await posts.create({ title: 'a', content: 'b', authorId: null });
  const article = made(await articles.save(toDraft({ title: 'a' })));
  const countAll = (): readonly number[] =>
    areas.map((area) => store.changes().at(store.changes().slotOf(area)));
  const before = countAll();
  const draft = { title: large, content: '', authorId: null };
  for (const write of [
    () => posts.create(draft),
    () => posts.update(post.id, draft),
    () => comments.add(post.id, large),
    () => todos.create({ title: large, completed: false }),
    () => articles.save(toDraft({ title: large })),
    () => articles.save(toDraft({ title: 'b', [large]: 1 })),
    () => articles.change(1, changing({ title: large })),
    () => articles.changeAll((all) => all.map(changing({ large }))),
  ]) {
    // A change of articles waits for a turn where this one has no time left.
    await assert.rejects(async () => write(), isFull, String(write));
  }
  assert.deepEqual(countAll(), before);
  assert.deepEqual([await allOf(posts.all), await allOf(articles.all)], [[post], [article]]);
  assert.equal((await articles.save(toDraft({ title: 'b' }))).id, article.id + 1);
});

test('what is removed or shortened makes room', async () => {
  const { posts, comments, articles } = openStore(20_000);
  for (let round = 0; round < 10; round += 1) {
    const post = await posts.create({ title: 'a', content: '', authorId: null });
    await comments.add(post.id, large);
    assert.throws(() => comments.add(post.id, large), isFull, `round ${round}`);
    await posts.remove(post.id);

    const { id } = await posts.create({ title: large, content: '', authorId: null });
    await posts.update(id, { title: 'a', content: '' });
    await posts.update(id, { title: large, content: '' });
    await posts.remove(id);

    await articles.save(toDraft({ id: 1, title: large }));
    await articles.change(1, changing({ title: 'a' }));
  }
});

test('a change that makes a record smaller succeeds in a store that is too full', async () => {
  const { posts } = openStore(1_900, { ...empty, posts: initialData([], true).posts });
  const [post] = await allOf(posts.all);
  assert.ok(post);
  assert.throws(() => posts.create({ title: 'a', content: 'b', authorId: null }), isFull);
  assert.equal(await posts.update(post.id, { title: 'a', content: 'b' }), true);
});

/** A post with so many comments, and the ids of the first and the last. */
async function addPostWith(store: Store, count: number) {
  const { id } = await store.posts.create({ title: 'a', content: '', authorId: null });
  const ids: string[] = [];
  for (const _ of times(count)) ids.push((await store.comments.add(id, 'c'))?.id ?? '');
  return { id, first: ids[0] ?? '', last: ids.at(-1) ?? '' };
}

/** The iterations of the event loop until it has settled. */
async function iterationsOf(work: unknown): Promise<number> {
  const state = { isOver: false };
  const end = (): void => void (state.isOver = true);
  void Promise.resolve(work).then(end, end);
  let count = 0;
  for (; !state.isOver; count += 1) await new Promise(setImmediate);
  return count;
}

test('the comments of a removed post are gone at once, their memory in pieces', async () => {
  const count = 20_000;
  // Each takes 442 bytes, and the post as many.
  const store = openStore(442 * (count + 1));
  const { id, first, last } = await addPostWith(store, count);
  const { posts, comments } = store;
  const fill = (): unknown => comments.add(other.id, 'c'.repeat(221 * (count - 1) - 1_000));
  const list = comments.ofPost(id);
  const removing = posts.remove(id);
  const before = store.changes().sumOf([store.changes().slotOf('comments')]);
  for (const [at, comment] of [first, last].entries()) {
    assert.equal(await comments.find(comment), undefined, `comment ${at}`);
    assert.equal(await comments.remove([comment]), false, `comment ${at}`);
  }
  assert.deepEqual((await list.read()).records, []);
  assert.equal(await comments.add(id, 'c'), undefined);
  const other = await posts.create({ title: 'b', content: '', authorId: null });
  assert.throws(fill, isFull);
  const iterations = await iterationsOf(removing);
  assert.ok(iterations > 5, `${iterations} iterations`);
  assert.equal(await removing, true);
  assert.equal(await posts.remove(id), false);
  assert.equal(store.changes().sumOf([store.changes().slotOf('comments')]), before);
  // All of it has been given back, and no more than that.
  for (const _ of times(count)) void comments.add(other.id, 'c');
  assert.throws(() => comments.add(other.id, 'c'), isFull);
});

test('the removal of each post waits for a turn of its own', async () => {
  const turns: (() => void)[] = [];
  const run: RunInTurn = (work) => new Promise((resolve) => void turns.push(() => resolve(work())));
  const { posts } = createMemoryStore(driverOptions({ initial: empty, run }));
  const all = [];
  for (const title of ['a', 'b'])
    all.push(await posts.create({ title, content: '', authorId: null }));
  const removing = all.map(async ({ id }) => posts.remove(id));
  for (const left of [2, 1, 0]) {
    assert.equal((await allOf(posts.all)).length, left);
    turns.shift()?.();
  }
  assert.deepEqual(await Promise.all(removing), [true, true]);
});

test('a store that is closed gives nothing back any more, and keeps no process alive', async () => {
  const store = openStore(Number.MAX_SAFE_INTEGER);
  const { id } = await addPostWith(store, 50_000);
  const removing = store.posts.remove(id);
  await store.close();
  assert.ok((await iterationsOf(removing)) < 4);
  assert.equal(await removing, true);
});
