/** Writes that are done once under a key (R40), on each store. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { idOf, isRepeated } from '../../dist/store/once.js';
import type { Once, Store } from '../../dist/store/store.js';
import { changing, toArticle, toDraft } from '../support/article-texts.ts';
import { allOf, times } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { made } from '../support/made.ts';
import { until } from '../support/until.ts';
import { text } from './contract-posts.ts';

type Open = (context: TestContext) => Promise<Store>;

const nobody = '00000000-0000-7000-8000-0000000000ff';

export function newOnce(): Once {
  return { key: randomUUID().slice(0, 22), fingerprint: 'print' };
}

/** Records to write to. */
async function fill({ posts, comments, todos, articles }: Store) {
  const post = made(await posts.create(text('a'))).id;
  await articles.save(toArticle({ id: 1, title: 'one', n: 0 }));
  return {
    post,
    comment: made(await comments.add(post, 'a')).id,
    todo: made(await todos.create({ title: 'a', completed: false })).id,
    waiting: made(await comments.add(post, 'w', { isPending: true })).id,
  };
}
type Ids = Awaited<ReturnType<typeof fill>>;

async function stateOf({ posts, comments, todos, articles }: Store, { post }: Ids) {
  const { pending } = comments;
  const lists = [posts.all, comments.ofPost(post), todos.all, articles.all, pending.all] as const;
  return Promise.all(lists.map((list) => allOf<unknown>(list)));
}

type Write = (store: Store, ids: Ids, once: Once) => unknown;

const count = changing((value) => ({ ...value, n: Number(value['n']) + 1 }));

/** By how many posts, comments, todos, articles and comments that wait there are then. */
const writes: Readonly<Record<string, Readonly<Record<string, Write>>>> = {
  '2 1 1 1 1': { 'posts.create': ({ posts }, _, once) => posts.create(text('b'), once) },
  '1 2 1 1 1': {
    'comments.add': ({ comments }, { post }, once) => comments.add(post, 'b', { once }),
  },
  '1 1 1 1 2': {
    'comments.add to those that wait': ({ comments }, { post }, once) =>
      comments.add(post, 'b', { once, isPending: true }),
  },
  '1 2 1 1 0': {
    'comments.approve': ({ comments }, { waiting }, once) => comments.approve(waiting, { once }),
  },
  '1 1 1 1 0': {
    'comments.remove of one that waits': ({ comments }, { waiting }, once) =>
      comments.remove([waiting], { once }),
  },
  '1 1 2 1 1': {
    'todos.create': ({ todos }, _, once) => todos.create({ title: 'b', completed: true }, once),
  },
  '1 1 1 2 1': {
    'articles.save': ({ articles }, _, once) => articles.save(toDraft({ title: 'b' }), once),
    'articles.save with an id': ({ articles }, _, once) =>
      articles.save(toDraft({ id: 7, title: 'b' }), once),
    'articles.create': ({ articles }, _, once) =>
      articles.create(toArticle({ id: 7, title: 'b' }), once),
  },
  '1 1 1 1 1': {
    'articles.change': ({ articles }, _, once) => articles.change(1, count, once),
    'articles.changeAll': ({ articles }, _, once) =>
      articles.changeAll((all) => all.map(count), once),
    'posts.update': ({ posts }, { post }, once) => posts.update(post, text('b'), { once }),
    'posts.update as expected': ({ posts }, { post }, once) =>
      posts.update(post, text('b'), { once, expected: { ...text('a'), status: 'DRAFT' } }),
    'todos.update': ({ todos }, { todo }, once) => todos.update(todo, { title: 'b' }, { once }),
  },
  '0 0 1 1 0': { 'posts.remove': ({ posts }, { post }, once) => posts.remove(post, { once }) },
  '1 0 1 1 1': {
    'comments.remove': ({ comments }, { comment }, once) => comments.remove([comment], { once }),
  },
  '1 1 0 1 1': { 'todos.remove': ({ todos }, { todo }, once) => todos.remove(todo, { once }) },
  '1 1 1 0 1': { 'articles.remove': ({ articles }, _, once) => articles.remove(1, { once }) },
};

/** What stores nothing, without an error or with one. */
const failures: Readonly<Record<string, Write>> = {
  'comments.add': ({ comments }, _, once) => comments.add(nobody, 'b', { once }),
  'articles.change': ({ articles }, _, once) => articles.change(999, count, once),
  'posts.update': ({ posts }, _, once) => posts.update(nobody, text('b'), { once }),
  'posts.update as expected': ({ posts }, { post }, once) =>
    posts.update(post, text('b'), { once, expected: { ...text('b'), status: 'DRAFT' } }),
  'posts.remove': ({ posts }, _, once) => posts.remove(nobody, { once }),
  'comments.approve': ({ comments }, _, once) => comments.approve(nobody, { once }),
  'comments.remove': ({ comments }, _, once) => comments.remove([nobody], { once }),
  'todos.update': ({ todos }, _, once) => todos.update(nobody, { title: 'b' }, { once }),
  'todos.remove': ({ todos }, _, once) => todos.remove(nobody, { once }),
  'articles.create': ({ articles }, _, once) =>
    articles.create(toArticle({ id: 1, title: 'b' }), once),
  'articles.remove': ({ articles }, _, once) => articles.remove(999, { once }),
};
const notApplicable = (): never => {
  throw new Error('not applicable');
};
const errors: Readonly<Record<string, Write>> = {
  'articles.change with an error': ({ articles }, _, once) =>
    articles.change(1, notApplicable, once),
  'articles.changeAll with an error': ({ articles }, _, once) =>
    articles.changeAll(notApplicable, once),
};

export function testRequests(open: Open): void {
  const rows = Object.entries(writes).flatMap(([sizes, of]) =>
    Object.entries(of).map(([name, write]) => ({ sizes, name, write })),
  );
  for (const { sizes, name, write } of rows) {
    const makesRecord = /create|add|save/.test(name);
    test(`of several repetitions of ${name} under a key one is done, and none later`, async (t) => {
      const store = await open(t);
      const ids = await fill(store);
      const once = newOnce();
      assert.equal(await store.requests.find(once), undefined);
      const all = await Promise.all(
        times(isLong ? 20 : 5).map(async () => write(store, ids, once)),
      );
      const [first, ...others] = all.filter((result) => !isRepeated(result));
      assert.equal(others.length, 0);
      const after = await stateOf(store, ids);
      assert.equal(after.map(({ length }) => length).join(' '), sizes);
      if (name.startsWith('articles.change')) {
        const { json } = toArticle({ id: 1, title: 'one', n: 1 });
        assert.equal((await store.articles.find(1))?.json, json);
      }
      all.push(await write(store, ids, once));
      const found = await store.requests.find(once);
      assert.ok(isRepeated(all.at(-1)) && isRepeated(found));
      if (makesRecord) assert.deepEqual(new Set([...all, found].map(idOf)), new Set([idOf(first)]));
      const other = { ...once, fingerprint: 'other' };
      const isReused = { code: 'idempotency_key_reused' };
      await assert.rejects(async () => write(store, ids, other), isReused);
      await assert.rejects(async () => store.requests.find(other), isReused);
      assert.deepEqual(await stateOf(store, ids), after);
    });
  }

  for (const [name, write] of Object.entries({ ...failures, ...errors })) {
    test(`${name} that stores nothing uses up no key`, async (t) => {
      const store = await open(t);
      const ids = await fill(store);
      const once = newOnce();
      const before = await stateOf(store, ids);
      const failed = async (): Promise<unknown> => write(store, ids, once);
      if (name in errors) await assert.rejects(failed, /not applicable/);
      else assert.ok([false, undefined].includes((await failed()) as undefined));
      assert.equal(await store.requests.find(once), undefined);
      assert.deepEqual(await stateOf(store, ids), before);
      made(await store.posts.create(text('c'), { ...once, fingerprint: 'other' }));
    });
  }

  test('many writes at once, 1 to 20 of them, each have their own record and key', async (t) => {
    const { posts, todos, requests } = await open(t);
    for (const size of [1, 2, 16, 17, 20]) {
      const pairs = times(size).map((at) => ({ at, once: newOnce() }));
      await Promise.all(
        pairs.map(async ({ at, once }) => {
          const content = `"{},\\' ${at}`;
          const { id } = made(
            await posts.create({ title: `${at}`, content, authorId: null }, once),
          );
          assert.equal((await requests.find(once))?.id, id);
          const post = await posts.find(id);
          assert.deepEqual([post?.title, post?.content, post?.authorId], [`${at}`, content, null]);
          const by = newOnce();
          const todo = made(await todos.create({ title: content, completed: at % 2 === 0 }, by));
          assert.equal((await requests.find(by))?.id, todo.id);
          assert.deepEqual(await todos.find(todo.id), todo);
        }),
      );
    }
  });

  test('a repetition takes no value of the counter of articles (R15)', async (t) => {
    const { articles } = await open(t);
    const once = newOnce();
    const { id } = made(await articles.save(toDraft({ title: 'a' }), once));
    await Promise.all(times(5).map(async () => articles.save(toDraft({ title: 'a' }), once)));
    assert.equal((await articles.save(toDraft({ title: 'b' }))).id, id + 1);
    assert.deepEqual(await articles.find(id), toArticle({ title: 'a', id }));
  });

  test('a repeated comment is told once', async (t) => {
    const { posts, comments } = await open(t);
    const { id } = made(await posts.create(text('a')));
    const heard: string[] = [];
    t.after(comments.watch(({ comment: { content } }) => heard.push(content)));
    await comments.ready?.();
    const once = newOnce();
    await Promise.all(times(5).map(async () => comments.add(id, 'a', { once })));
    await comments.add(id, 'b');
    await until('both', () => heard.length > 1);
    assert.deepEqual(heard, ['a', 'b']);
  });
}
