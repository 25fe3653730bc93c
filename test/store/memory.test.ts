import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../dist/errors.js';
import { createIdSource } from '../../dist/domain/scalars.js';
import { createMemoryStore, type InitialData } from '../../dist/store/memory.js';
import { initialData } from '../../dist/store/seed.js';
import type { Store } from '../../dist/store/store.js';
import { testStore } from './contract.js';
import { allOf } from '../support/lists.js';
import { changing, toDraft } from '../support/article-texts.js';

const empty: InitialData = {
  authors: [],
  accounts: [],
  posts: [],
  comments: [],
  todos: [],
  articles: [],
};

function openStore(initial: InitialData, bytesMax = Number.MAX_SAFE_INTEGER): Store {
  return createMemoryStore({
    createId: createIdSource(() => new Date()),
    now: () => '2026-01-01T00:00:00',
    initial,
    bytesMax,
  });
}

testStore('memory', (_context, initial) => Promise.resolve(openStore(initial)));

const isFull = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'storage_full';

test('beyond its bytes nothing is stored, by no endpoint', async () => {
  const { posts, comments, todos, articles, ...store } = openStore(empty, 10_000);
  const post = await posts.create({ title: 'a', content: 'b', authorId: null });
  const article = await articles.save(toDraft({ title: 'a' }));
  const large = 'x'.repeat(5_000);
  const before = { ...store.versions() };
  const draft = { title: large, content: '', authorId: null };
  assert.throws(() => posts.create(draft), isFull);
  assert.throws(() => posts.update(post.id, draft), isFull);
  assert.throws(() => comments.add(post.id, large), isFull);
  assert.throws(() => todos.create({ title: large, completed: false }), isFull);
  assert.throws(() => articles.save(toDraft({ title: large })), isFull);
  assert.throws(() => articles.save(toDraft({ title: 'b', [large]: 1 })), isFull);
  assert.throws(
    () =>
      articles.change(
        1,
        changing((found) => ({ ...found, title: large })),
      ),
    isFull,
  );
  assert.throws(
    () => articles.changeAll((all) => all.map(changing((one) => ({ ...one, large })))),
    isFull,
  );
  assert.deepEqual(store.versions(), before);
  assert.deepEqual([await allOf(posts.all), await allOf(articles.all)], [[post], [article]]);
  assert.equal((await articles.save(toDraft({ title: 'b' }))).id, article.id + 1);
});

test('what is removed or shortened makes room', async () => {
  const { posts, comments, articles } = openStore(empty, 20_000);
  const large = 'x'.repeat(5_000);
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
    await articles.change(
      1,
      changing((found) => ({ ...found, title: 'a' })),
    );
  }
});

test('a change that makes a record smaller succeeds in a store that is too full', async () => {
  const initial = { ...empty, posts: initialData([], true).posts };
  const { posts } = openStore(initial, 1_900);
  const [post] = await allOf(posts.all);
  assert.ok(post);
  assert.throws(() => posts.create({ title: 'a', content: 'b', authorId: null }), isFull);
  assert.equal(await posts.update(post.id, { title: 'a', content: 'b' }), true);
});

test('many small records count for what they cost', async () => {
  const { todos } = openStore(empty, 1_000_000);
  let kept = 0;
  try {
    for (; kept < 1_000_000; kept += 1) await todos.create({ title: 'a', completed: false });
  } catch (error) {
    assert.ok(isFull(error));
  }
  assert.ok(kept > 1_000 && kept < 10_000, `${kept} records`);
});
