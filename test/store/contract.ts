/** What every driver keeps of the port (src/store/store.ts): one suite over a store factory. */

import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import type { InitialData } from '../../dist/store/memory.js';
import type { Account, Author } from '../../dist/store/model.js';
import type { Area, Store, Versions } from '../../dist/store/store.js';
import { anyCharacter } from '../support/texts.js';
import { testArticles } from './contract-articles.js';
import { testChanges } from './contract-changes.js';
import { testLists } from './contract-lists.js';
import { allOf } from '../support/lists.js';
import { cases, isLong } from '../support/long.js';
import { changing, toDraft, valueOf } from '../support/article-texts.js';

/** A store that holds `initial` and nothing else, and ends with the test. */
export type StoreFactory = (context: TestContext, initial: InitialData) => Promise<Store>;

const ada: Author = {
  id: '00000000-0000-7000-8000-00000000000a',
  name: 'Ada',
  email: 'ada@example.org',
  createdAt: '2026-01-01T00:00:00',
};
const account: Account = {
  id: ada.id,
  username: 'ada',
  email: ada.email,
  roles: ['USER', 'ADMIN'],
  passwordHash: 'scrypt$1$1$1$a$b',
};
const nobody = '00000000-0000-7000-8000-0000000000ff';

const nothing: InitialData = {
  authors: [ada],
  accounts: [account],
  posts: [],
  comments: [],
  todos: [],
  articles: [],
};

/** Any Unicode text, with the characters that drivers stumble over made likely. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: anyCharacter }),
  fc.string({ unit: fc.constantFrom('\0', '\u{1F600}', '\uFFFF', '\\', "'", '"', '\u2028', '%') }),
);

const text = (title: string): { title: string; content: string; authorId: null } => {
  return { title, content: `${title} content`, authorId: null };
};

export function testStore(driver: string, open: StoreFactory): void {
  describe(`${driver}: lists`, () => testLists((t) => open(t, nothing)));
  describe(`${driver}: changes`, () => testChanges((t) => open(t, nothing)));
  describe(`${driver}: posts`, () => testPosts(open));
  describe(`${driver}: comments`, () => testComments(open));
  describe(`${driver}: authors, accounts and todos`, () => testOthers(open));
  describe(`${driver}: articles`, () =>
    testArticles((t, articles) => open(t, { ...nothing, articles })));
  describe(`${driver}: texts`, () => testTexts(open));
}

function testPosts(open: StoreFactory): void {
  test('a post that was created is found, as a draft with an id and a date', async (t) => {
    const { posts } = await open(t, nothing);
    const post = await posts.create({ title: 'a', content: 'b', authorId: ada.id });
    const { id, createdAt, ...rest } = post;
    assert.deepEqual(rest, { title: 'a', content: 'b', status: 'DRAFT', authorId: ada.id });
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.match(createdAt, /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?$/);
    assert.deepEqual(await posts.find(id), post);
    assert.equal(await posts.find(nobody), undefined);
  });

  test('posts are listed newest first, also when they were made in one moment (R2)', async (t) => {
    const { posts } = await open(t, nothing);
    const made = [];
    for (let count = 0; count < 50; count += 1) made.push(await posts.create(text(`${count}`)));
    assert.deepEqual(await allOf(posts.all), made.toReversed());
  });

  test('ids are unique and grow, also under parallel creation', async (t) => {
    const { posts } = await open(t, nothing);
    const made = await Promise.all(
      Array.from({ length: 100 }, async (_, at) => posts.create(text(`${at}`))),
    );
    const ids = made.map(({ id }) => id);
    assert.equal(new Set(ids).size, 100);
    assert.deepEqual(ids, ids.toSorted());
    // Which of several that are made at one time is the newest, a driver may say.
    const listed = (await allOf(posts.all)).map(({ id }) => id);
    assert.deepEqual(listed.toSorted(), ids);
  });

  test('an update changes title and content alone, in place', async (t) => {
    const { posts } = await open(t, nothing);
    const first = await posts.create({ ...text('a'), authorId: ada.id });
    await posts.create(text('b'));
    assert.equal(await posts.update(first.id, { title: 'c', content: 'd' }), true);
    assert.deepEqual(await posts.find(first.id), { ...first, title: 'c', content: 'd' });
    assert.deepEqual(
      (await allOf(posts.all)).map(({ title }) => title),
      ['b', 'c'],
    );
    assert.equal(await posts.update(nobody, { title: 'c', content: 'd' }), false);
  });

  test('a list that was given does not change afterwards', async (t) => {
    const { posts } = await open(t, nothing);
    const post = await posts.create(text('a'));
    const listed = await allOf(posts.all);
    await posts.create(text('b'));
    await posts.update(post.id, { title: 'c', content: 'c' });
    assert.deepEqual(listed, [post]);
  });

  test('a removed post takes its comments with it, and no others (R7)', async (t) => {
    const { posts, comments } = await open(t, nothing);
    const post = await posts.create({ ...text('a'), authorId: ada.id });
    const other = await posts.create({ ...text('b'), authorId: ada.id });
    const comment = await comments.add(post.id, 'x');
    const kept = await comments.add(other.id, 'y');
    assert.ok(comment && kept);
    assert.equal(await posts.remove(post.id), true);
    assert.equal(await posts.find(post.id), undefined);
    assert.equal(await comments.find(comment.id), undefined);
    assert.deepEqual(await allOf(comments.ofPost(post.id)), []);
    assert.equal(await comments.add(post.id, 'z'), undefined);
    assert.deepEqual(await comments.find(kept.id), kept);
    assert.deepEqual(await allOf(posts.ofAuthor(ada.id)), [other]);
    assert.equal(await posts.remove(post.id), false);
  });

  test('posts by author are newest first; an author without any has none', async (t) => {
    const { posts } = await open(t, nothing);
    const first = await posts.create({ ...text('a'), authorId: ada.id });
    await posts.create(text('b'));
    const second = await posts.create({ ...text('c'), authorId: ada.id });
    assert.deepEqual(await allOf(posts.ofAuthor(ada.id)), [second, first]);
    assert.deepEqual(await allOf(posts.ofAuthor(nobody)), []);
  });

  test('a post is changed and removed only as it is expected', async (t) => {
    const { posts } = await open(t, nothing);
    const status = 'DRAFT' as const;
    const { title, content } = text('a\0');
    const [seen, change] = [
      { title, content, status },
      { title: 'b', content: '', status },
    ];
    const { id } = await posts.create(text('a\0'));
    assert.equal(await posts.update(id, text('c'), { ...seen, title: 'b' }), false);
    assert.equal(await posts.update(id, text('c'), { ...seen, content: 'b' }), false);
    assert.equal(await posts.update(id, text('c'), { ...seen, status: 'PUBLISHED' }), false);
    assert.equal(await posts.remove(id, change), false);
    assert.deepEqual({ ...(await posts.find(id)), ...seen }, await posts.find(id));
    assert.equal(await posts.update(id, change, seen), true);
    assert.equal(await posts.update(id, text('c'), seen), false);
    assert.equal(await posts.remove(id, seen), false);
    assert.equal(await posts.remove(id, change), true);
    assert.equal(await posts.update(id, change, change), false);
  });

  test('of parallel removals of one post one succeeds', async (t) => {
    const { posts } = await open(t, nothing);
    const { id } = await posts.create(text('a'));
    const removed = await Promise.all(Array.from({ length: 5 }, async () => posts.remove(id)));
    assert.equal(removed.filter(Boolean).length, 1);
  });
}

function testComments(open: StoreFactory): void {
  test('comments are listed oldest first, also when made in one moment (R2)', async (t) => {
    const { posts, comments } = await open(t, nothing);
    const { id } = await posts.create(text('a'));
    assert.deepEqual(await allOf(comments.ofPost(id)), []);
    const made = [];
    for (let count = 0; count < 50; count += 1) made.push(await comments.add(id, `${count}`));
    assert.deepEqual(await allOf(comments.ofPost(id)), made);
    assert.equal(made[0]?.postId, id);
    assert.deepEqual(await comments.find(made[7]?.id ?? ''), made[7]);
  });

  test('a comment on no post is not stored', async (t) => {
    const { comments } = await open(t, nothing);
    assert.equal(await comments.add(nobody, 'a'), undefined);
    assert.deepEqual(await allOf(comments.ofPost(nobody)), []);
    assert.equal(await comments.find(nobody), undefined);
  });
}

function testOthers(open: StoreFactory): void {
  test('authors are found by id', async (t) => {
    const { authors } = await open(t, nothing);
    assert.deepEqual(await authors.find(ada.id), ada);
    assert.equal(await authors.find(nobody), undefined);
  });

  test('accounts are found by their exact user name', async (t) => {
    const { accounts } = await open(t, nothing);
    assert.deepEqual(await accounts.find('ada'), account);
    for (const name of ['Ada', 'ada ', '', '__proto__', 'ada\0']) {
      assert.equal(await accounts.find(name), undefined);
    }
  });

  test('todos are kept in the order they came, the first ones first (R2)', async (t) => {
    const first = { id: nobody, title: 'first', completed: true };
    const { todos } = await open(t, { ...nothing, todos: [first] });
    const second = await todos.create({ title: 'second', completed: false });
    const third = await todos.create({ title: 'third', completed: true });
    assert.deepEqual(await allOf(todos.all), [first, second, third]);
    assert.deepEqual(await todos.find(third.id), third);
    assert.deepEqual(await todos.find(nobody), first);
    assert.equal(await todos.find(ada.id), undefined);
  });

  test('every write moves the versions of what it changes and no others', async (t) => {
    const store = await open(t, nothing);
    if (store.versions() === undefined) return;
    const movedBy = async (write: () => unknown): Promise<readonly string[]> => {
      const before = { ...store.versions() };
      await write();
      const after: Partial<Versions> = store.versions() ?? {};
      return Object.keys(after).filter((area) => after[area as Area] !== before[area as Area]);
    };
    const { posts, comments, todos, articles } = store;
    const { id } = await posts.create(text('a'));
    const retitle = changing((article) => ({ ...article, title: `${article.title}+` }));
    const writes: readonly (readonly [Area, () => unknown])[] = [
      ['posts', () => posts.create(text('b'))],
      ['posts', () => posts.update(id, { title: 'b', content: 'b' })],
      ['comments', () => comments.add(id, 'c')],
      ['todos', () => todos.create({ title: 'd', completed: false })],
      ['articles', () => articles.save(toDraft({ title: 'e' }))],
      ['articles', () => articles.change(1, retitle)],
      ['articles', () => articles.changeAll((all) => all.map(retitle))],
    ];
    for (const [area, write] of writes) assert.deepEqual(await movedBy(write), [area]);
    // Its comments go with it; what reads comments reads whether the post is there.
    assert.ok((await movedBy(() => posts.remove(id))).includes('posts'));
  });
}

function testTexts(open: StoreFactory): void {
  test('every Unicode text is kept exactly', async (t) => {
    const { posts, comments, todos, articles } = await open(t, nothing);
    await fc.assert(
      fc.asyncProperty(anyText, anyText, async (title, content) => {
        const { id } = await posts.create({ title, content, authorId: null });
        const post = await posts.find(id);
        assert.deepEqual([post?.title, post?.content], [title, content]);
        const comment = await comments.add(id, content);
        assert.equal((await comments.find(comment?.id ?? ''))?.content, content);
        const todo = await todos.create({ title, completed: false });
        assert.equal((await todos.find(todo.id))?.title, title);
        const article = await articles.save(toDraft({ title, [`k${content}`]: [content] }));
        assert.deepEqual(valueOf(await articles.find(article.id))?.[`k${content}`], [content]);
        await posts.update(id, { title: content, content: title });
        assert.equal((await posts.find(id))?.title, content);
      }),
      { numRuns: cases(100) },
    );
  });

  test('empty and large texts are kept exactly', async (t) => {
    const { posts, comments } = await open(t, nothing);
    const repeated = { x: 1_048_576, '\u{1F600}': 100_000, 'ä\0': isLong ? 500_000 : 50_000, a: 0 };
    for (const content of Object.entries(repeated).map(([unit, times]) => unit.repeat(times))) {
      const { id } = await posts.create({ title: content, content, authorId: null });
      assert.equal((await posts.find(id))?.content, content);
      const comment = await comments.add(id, content);
      assert.equal((await comments.find(comment?.id ?? ''))?.content, content);
    }
  });
}
