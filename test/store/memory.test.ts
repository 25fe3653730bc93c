/** What the store in memory holds at most. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryStore } from '../../dist/store/memory.js';
import { initialData } from '../../dist/store/seed.js';
import type { Store } from '../../dist/store/store.js';
import { changing, toDraft } from '../support/article-texts.js';
import { withCode } from '../support/errors.js';
import { allOf, times } from '../support/lists.js';
import { driverOptions } from '../support/driver-options.js';

const empty = { authors: [], accounts: [], posts: [], comments: [], todos: [], articles: [] };

const openStore = (bytesMax: number, initial = empty as ReturnType<typeof initialData>): Store =>
  createMemoryStore(driverOptions({ initial, bytesMax }));

const areas = ['posts', 'comments', 'todos', 'articles'] as const;
const isFull = withCode('storage_full');
const large = 'x'.repeat(5_000);

test('beyond its bytes nothing is stored, by no endpoint', async () => {
  const { posts, comments, todos, articles, ...store } = openStore(10_000);
  const post = await posts.create({ title: 'a', content: 'b', authorId: null });
  const article = await articles.save(toDraft({ title: 'a' }));
  const countAll = (): readonly number[] =>
    areas.map((area) => store.changes().at(store.changes().placeOf(area)));
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
    assert.throws(write, isFull, String(write));
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
    assert.throws(() => comments.add(post.id, large), isFull);
    await posts.remove(post.id);

    const { id } = await posts.create({ title: large, content: '', authorId: null });
    await posts.update(id, { title: 'a', content: '' });
    await posts.update(id, { title: large, content: '' });
    await posts.remove(id);

    await articles.save(toDraft({ id: 1, title: large }));
    await articles.change(1, changing({ title: 'a' }));
  }
});

test('what is removed gives back as much as it took', async () => {
  const { todos } = openStore(10_000);
  const create = async (length: number): Promise<string> =>
    (await todos.create({ title: 'x'.repeat(length), completed: false })).id;
  let longest = 0;
  for (const step of [1_000, 100, 10, 1]) {
    for (;;) {
      const id = await create(longest + step).catch(() => undefined);
      if (id === undefined) break;
      await todos.remove(id);
      longest += step;
    }
  }
  for (const _ of times(20)) await todos.remove(await create(1));
  await assert.rejects(create(longest + 1), isFull);
  await create(longest);
});

test('a change that makes a record smaller succeeds in a store that is too full', async () => {
  const { posts } = openStore(1_900, { ...empty, posts: initialData([], true).posts });
  const [post] = await allOf(posts.all);
  assert.ok(post);
  assert.throws(() => posts.create({ title: 'a', content: 'b', authorId: null }), isFull);
  assert.equal(await posts.update(post.id, { title: 'a', content: 'b' }), true);
});

test('many small records count for what they cost', async () => {
  const { todos } = openStore(1_000_000);
  for (const _ of times(1_000)) await todos.create({ title: 'a', completed: false });
  assert.throws(() => {
    for (const _ of times(9_000)) void todos.create({ title: 'a', completed: false });
  }, isFull);
});
