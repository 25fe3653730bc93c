/** Writes that are done once under a key (R40), on each store. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { createComments } from '../../dist/domain/comments.js';
import type { Once, Store } from '../../dist/store/store.js';
import { anyone } from '../support/anyone.ts';
import { changing, toArticle, toDraft } from '../support/article-texts.ts';
import { allOf, times } from '../support/lists.ts';
import { made } from '../support/made.ts';
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
  };
}
type Ids = Awaited<ReturnType<typeof fill>>;

async function stateOf({ posts, comments, todos, articles }: Store, { post }: Ids) {
  const lists = [posts.all, comments.ofPost(post), todos.all, articles.all] as const;
  return Promise.all(lists.map((list) => allOf<unknown>(list)));
}

async function sizesOf(store: Store, ids: Ids): Promise<readonly number[]> {
  return (await stateOf(store, ids)).map(({ length }) => length);
}
/** After one write of each kind, unless there is one of each. */
const sizes: Readonly<Record<string, readonly number[]>> = {
  'posts.create': [2, 1, 1, 1],
  'comments.add': [1, 2, 1, 1],
  'todos.create': [1, 1, 2, 1],
  'articles.save': [1, 1, 1, 2],
  'articles.save with an id': [1, 1, 1, 2],
  'posts.remove': [0, 0, 1, 1],
  'comments.remove': [1, 0, 1, 1],
  'todos.remove': [1, 1, 0, 1],
  'articles.create': [1, 1, 1, 2],
  'articles.remove': [1, 1, 1, 0],
};

type Write = (store: Store, ids: Ids, once: Once) => unknown;

const count = changing((value) => ({ ...value, n: Number(value['n']) + 1 }));

const creates: Readonly<Record<string, Write>> = {
  'posts.create': ({ posts }, _, once) => posts.create(text('b'), once),
  'todos.create': ({ todos }, _, once) => todos.create({ title: 'b', completed: true }, once),
  'comments.add': ({ comments }, { post }, once) => comments.add(post, 'b', { once }),
  'articles.save': ({ articles }, _, once) => articles.save(toDraft({ title: 'b' }), once),
  'articles.save with an id': ({ articles }, _, once) =>
    articles.save(toDraft({ id: 7, title: 'b' }), once),
  'articles.create': ({ articles }, _, once) =>
    articles.create(toArticle({ id: 7, title: 'b' }), once),
};
const changes: Readonly<Record<string, Write>> = {
  'articles.change': ({ articles }, _, once) => articles.change(1, count, once),
  'articles.changeAll': ({ articles }, _, once) =>
    articles.changeAll((all) => all.map(count), once),
  'posts.update': ({ posts }, { post }, once) => posts.update(post, text('b'), { once }),
  'posts.update as expected': ({ posts }, { post }, once) =>
    posts.update(post, text('b'), { once, expected: { ...text('a'), status: 'DRAFT' } }),
  'posts.remove': ({ posts }, { post }, once) => posts.remove(post, { once }),
  'comments.remove': ({ comments }, { comment }, once) => comments.remove([comment], { once }),
  'todos.update': ({ todos }, { todo }, once) => todos.update(todo, { title: 'b' }, { once }),
  'todos.remove': ({ todos }, { todo }, once) => todos.remove(todo, { once }),
  'articles.remove': ({ articles }, _, once) => articles.remove(1, { once }),
};

/** What stores nothing, without an error or with one. */
const failures: Readonly<Record<string, Write>> = {
  'comments.add': ({ comments }, _, once) => comments.add(nobody, 'b', { once }),
  'articles.change': ({ articles }, _, once) => articles.change(999, count, once),
  'posts.update': ({ posts }, _, once) => posts.update(nobody, text('b'), { once }),
  'posts.update as expected': ({ posts }, { post }, once) =>
    posts.update(post, text('b'), { once, expected: { ...text('b'), status: 'DRAFT' } }),
  'posts.remove': ({ posts }, _, once) => posts.remove(nobody, { once }),
  'comments.remove': ({ comments }, _, once) => comments.remove([nobody], { once }),
  'todos.update': ({ todos }, _, once) => todos.update(nobody, { title: 'b' }, { once }),
  'todos.remove': ({ todos }, _, once) => todos.remove(nobody, { once }),
  'articles.create': ({ articles }, _, once) =>
    articles.create(toArticle({ id: 1, title: 'b' }), once),
  'articles.remove': ({ articles }, _, once) => articles.remove(999, { once }),
};
const refuse = (): never => {
  throw new Error('not applicable');
};
const errors: Readonly<Record<string, Write>> = {
  'articles.change': ({ articles }, _, once) => articles.change(1, refuse, once),
  'articles.changeAll': ({ articles }, _, once) => articles.changeAll(refuse, once),
};

export function testRequests(open: Open): void {
  for (const [name, write] of Object.entries({ ...creates, ...changes })) {
    test(`${name} is done once under a key, whoever repeats it`, async (t) => {
      const store = await open(t);
      const ids = await fill(store);
      const once = newOnce();
      assert.equal(await store.requests.find(once), undefined);
      const first = await write(store, ids, once);
      const repeated = { id: idOf(first), isRepeated: true };
      const after = await stateOf(store, ids);
      for (const [at, again] of [
        await write(store, ids, once),
        await store.requests.find(once),
      ].entries()) {
        assert.deepEqual(
          again,
          name in creates ? repeated : { ...repeated, id: idOf(again) },
          `again ${at}`,
        );
      }
      const other = { ...once, fingerprint: 'other' };
      const isReused = { code: 'idempotency_key_reused' };
      await assert.rejects(async () => write(store, ids, other), isReused);
      await assert.rejects(async () => store.requests.find(other), isReused);
      assert.deepEqual(await stateOf(store, ids), after);
    });

    test(`of 20 repetitions of ${name} at once one is done`, async (t) => {
      const store = await open(t);
      const ids = await fill(store);
      const once = newOnce();
      const all = await Promise.all(times(20).map(async () => write(store, ids, once)));
      const firsts = all.filter((result) => !isRepeated(result));
      assert.equal(firsts.length, 1);
      if (name in creates) assert.deepEqual(new Set(all.map(idOf)), new Set(firsts.map(idOf)));
      assert.deepEqual(await sizesOf(store, ids), sizes[name] ?? [1, 1, 1, 1]);
      if (name.startsWith('articles.change')) {
        assert.equal(
          (await store.articles.find(1))?.json,
          toArticle({ id: 1, title: 'one', n: 1 }).json,
        );
      }
    });
  }

  for (const [name, write] of Object.entries({ ...failures, ...errors })) {
    test(`${name} that stores nothing uses up no key`, async (t) => {
      const store = await open(t);
      const ids = await fill(store);
      const once = newOnce();
      const before = await stateOf(store, ids);
      const failed = async (): Promise<unknown> => write(store, ids, once);
      if (name in errors && errors[name] === write) await assert.rejects(failed, /not applicable/);
      else assert.ok([false, undefined].includes((await failed()) as undefined));
      assert.equal(await store.requests.find(once), undefined);
      assert.deepEqual(await stateOf(store, ids), before);
      made(await store.posts.create(text('c'), { ...once, fingerprint: 'other' }));
    });
  }

  test('many writes at once, 1 to 20 of them, each have their own record and key', async (t) => {
    const { posts, todos, requests } = await open(t);
    for (const size of [1, 2, 16, 17, 20]) {
      const writes = times(size).map((at) => ({ at, once: newOnce() }));
      await Promise.all(
        writes.map(async ({ at, once }) => {
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
    const saved = await articles.save(toDraft({ title: 'b' }));
    assert.equal(saved.id, id + 1);
    assert.deepEqual(await articles.find(id), toArticle({ title: 'a', id }));
  });

  test('a repeated comment is published once', async (t) => {
    const store = await open(t);
    const { post } = await fill(store);
    const { addComment, commentAdded } = createComments(store, {
      queueBytesMax: 1_000_000,
      hasOwners: false,
    });
    const events = commentAdded.subscribe();
    t.after(async () => events.return?.());
    await store.comments.ready?.();
    const once = newOnce();
    await Promise.all(
      times(5).map(async () => addComment(anyone, { postId: post, content: 'a' }, once)),
    );
    await addComment(anyone, { postId: post, content: 'b' }, newOnce());
    const [first, second] = [await events.next(), await events.next()];
    assert.deepEqual([first.value?.comment.content, second.value?.comment.content], ['a', 'b']);
  });
}

function isRepeated(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'isRepeated' in result;
}

function idOf(result: unknown): string {
  const { id = '' } = Object(result) as { readonly id?: string | number };
  return String(id);
}
