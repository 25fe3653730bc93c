/** What every driver keeps of the port (src/store/store.ts), on each store. */

import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import { readConfig } from '../../dist/config.js';
import { createIdSource } from '../../dist/domain/ids.js';
import { createLocalClock } from '../../dist/domain/local-date-time.js';
import type { InitialData, Store } from '../../dist/store/store.js';
import type { Account, Author, Comment } from '../../dist/store/model.js';
import { openStore } from '../../dist/store/open.js';
import { initialData } from '../../dist/store/seed.js';
import { toDraft } from '../support/article-texts.ts';
import { allOf } from '../support/lists.ts';
import { cases, isLong } from '../support/long.ts';
import { ann, driverOptions } from '../support/driver-options.ts';
import { made } from '../support/made.ts';
import { openOn, stores } from '../support/stores.ts';
import { anyCharacter, anyCodeUnit } from '../support/texts.ts';
import { testArticles } from './contract-articles.ts';
import { testLists, testPages } from './contract-lists.ts';
import { testComments, testPosts } from './contract-posts.ts';
import { testPublication } from './contract-publication.ts';
import { testPending } from './contract-pending.ts';
import { testRequests } from './contract-requests.ts';
import { testResume } from './contract-resume.ts';

/** A store that holds these records and no others, and ends with the test. */
type Open = (context: TestContext, initial?: Partial<InitialData>) => Promise<Store>;

const ada: Author = {
  id: '00000000-0000-7000-8000-00000000000a',
  name: 'Ada',
  email: 'ada@example.org',
  createdAt: '2026-01-01T00:00:00',
};
const account: Account = { ...ann, id: ada.id, username: 'ada', roles: ['USER', 'ADMIN'] };
const nobody = '00000000-0000-7000-8000-0000000000ff';
const none = { authors: [], accounts: [], posts: [], comments: [], todos: [], articles: [] };

/** Any text, with those made likely that databases stumble over. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: anyCharacter }),
  fc.string({ unit: anyCodeUnit }),
  fc.string({ unit: fc.constantFrom('\0', '\u{1F600}', '\uFFFF', '\\', "'", '"', '\u2028', '%') }),
  fc.constantFrom('', ' ', '\0', 'a\0b', '\ud800', '\udc00\ud800', '␚', '␚0000', '\\u0000', '\r\n'),
);

for (const { name, skip, newUrl } of stores) {
  const open: Open = async (t, initial) => {
    const given = { ...none, authors: [ada], accounts: [account], ...initial };
    return openOn(t, await newUrl(t), { initial: given });
  };
  describe(`the store ${name}`, { skip }, () => {
    describe('initial data', () => testInitial(open));
    describe('lists', () => testLists(open));
    describe('pages', () => testPages(open));
    describe('changes', () => testChanges(open));
    describe('posts', () => testPosts(open));
    describe('publication', () =>
      testPublication(async (t, clock) => {
        const times = { now: createLocalClock(clock), createId: createIdSource(clock) };
        return openOn(t, await newUrl(t), { initial: none, ...times });
      }));
    describe('comments', () => testComments(open));
    describe('comments that wait', () => testPending(open));
    describe('comments after a place', () => testResume(open));
    describe('authors, accounts and todos', () => testOthers(open));
    describe('articles', () => testArticles((t, articles) => open(t, { articles })));
    describe('texts', () => testTexts(open));
    describe('requests', () => testRequests(open));
  });
}

function testInitial(open: Open): void {
  test('is what a new store holds', async (t) => {
    const initial = initialData([ann], true);
    const store = await open(t, initial);
    assert.deepEqual(await allOf(store.posts.all), initial.posts.toReversed());
    assert.deepEqual(await allOf(store.todos.all), initial.todos);
    assert.deepEqual(await allOf(store.articles.all), initial.articles);
    assert.deepEqual(await store.accounts.find('ann'), ann);
    assert.equal(await store.accounts.find('constructor'), undefined);
    assert.equal((await store.authors.find(ann.id))?.name, 'ann');
    assert.equal(await store.authors.find(nobody), undefined);
    const id = initial.posts[0]?.id ?? '';
    const comments = initial.comments.filter(({ postId }) => postId === id);
    assert.deepEqual(await allOf(store.comments.ofPost(id)), comments);
  });
}

function testChanges(open: Open): void {
  test('posts and todos are changed in part, todos and comments removed (R37)', async (t) => {
    const { posts, comments, todos } = await open(t);
    const post = made(await posts.create({ title: 'a', content: 'b', authorId: null }));
    assert.equal(await posts.update(post.id, { status: 'PUBLISHED' }), true);
    const published = { ...post, status: 'PUBLISHED', publishedAt: post.createdAt };
    assert.deepEqual(await posts.find(post.id), published);
    assert.equal(await posts.update(post.id, { title: 'b' }), true);
    assert.equal(await posts.update(post.id, {}), true);
    assert.deepEqual(await allOf(posts.all), [{ ...published, title: 'b' }]);

    const added = [];
    for (const content of ['c', 'd', 'e']) added.push(await comments.add(post.id, content));
    const [first, second, third] = added;
    assert.equal(await comments.remove([second?.id ?? '']), true);
    assert.equal(await comments.remove([second?.id ?? '']), false);
    assert.equal(await comments.find(second?.id ?? ''), undefined);
    assert.deepEqual(await allOf(comments.ofPost(post.id)), [first, third]);

    const todo = await todos.create({ title: 'f\0', completed: false });
    const other = await todos.create({ title: 'g', completed: false });
    assert.equal(await todos.update(todo.id, { completed: true }), true);
    const seen = { title: 'f\0', completed: true };
    assert.deepEqual(await todos.find(todo.id), { id: todo.id, ...seen });
    assert.equal(
      await todos.update(todo.id, { title: 'h' }, { expected: { ...seen, completed: false } }),
      false,
    );
    assert.equal(await todos.update(todo.id, { title: 'h' }, { expected: seen }), true);
    assert.equal(await todos.remove(todo.id, { expected: seen }), false);
    assert.deepEqual(await allOf(todos.all), [{ ...seen, id: todo.id, title: 'h' }, other]);
    assert.equal(await todos.remove(todo.id, { expected: { ...seen, title: 'h' } }), true);
    assert.equal(await todos.remove(todo.id), false);
    assert.deepEqual(await allOf(todos.all), [other]);
    for (const { update } of [posts, todos]) assert.equal(await update(nobody, {}), false);
  });
}

function testOthers(open: Open): void {
  test('accounts are found by their exact user name', async (t) => {
    const { accounts } = await open(t);
    assert.deepEqual(await accounts.find('ada'), account);
    for (const name of ['Ada', 'ada ', '', '__proto__', 'ada\0'])
      assert.equal(await accounts.find(name), undefined, name);
  });

  test('todos are kept in the order they came, the first ones first (R2)', async (t) => {
    const first = { id: nobody, title: 'first', completed: true };
    const { todos } = await open(t, { todos: [first] });
    const second = await todos.create({ title: 'second', completed: false });
    const third = await todos.create({ title: 'third', completed: true });
    assert.deepEqual(await allOf(todos.all), [first, second, third]);
    assert.deepEqual(await todos.find(third.id), third);
    assert.deepEqual(await todos.find(nobody), first);
    assert.equal(await todos.find(ada.id), undefined);
  });
}

function testTexts(open: Open): void {
  test('every text is kept exactly', async (t) => {
    const { posts, comments, todos, articles } = await open(t);
    const property = fc.asyncProperty(anyText, anyText, async (title, content) => {
      const { id } = await posts.create({ title, content, authorId: null });
      const post = await posts.find(id);
      assert.deepEqual([post?.title, post?.content], [title, content]);
      const comment = await comments.add(id, content, { name: title, authorId: ada.id });
      assert.deepEqual(await comments.find(comment?.id ?? ''), comment);
      assert.deepEqual(await allOf(comments.ofPost(id)), [comment]);
      const { name, authorId, ...rest } = Object(comment) as Comment;
      assert.deepEqual([rest.content, name, authorId], [content, title, ada.id]);
      const todo = await todos.create({ title, completed: false });
      assert.equal((await todos.find(todo.id))?.title, title);
      const saved = await articles.save(toDraft({ id: 7, title, [`k${content}`]: [content] }));
      const { json } = made(saved);
      assert.equal((await articles.find(7))?.json, json);
      assert.equal(json, JSON.stringify({ id: 7, title, [`k${content}`]: [content] }));
      await posts.update(id, { title: content, content: title });
      assert.equal((await posts.find(id))?.title, content);
    });
    await fc.assert(property, { numRuns: cases(200) });
  });

  test('empty and large texts are kept exactly', async (t) => {
    const { posts, comments } = await open(t);
    const repeated = { x: 1_048_576, '\u{1F600}': 100_000, 'ä\0': isLong ? 500_000 : 50_000, a: 0 };
    for (const content of Object.entries(repeated).map(([unit, count]) => unit.repeat(count))) {
      const { id } = await posts.create({ title: content, content, authorId: null });
      assert.equal((await posts.find(id))?.content, content, content);
      const comment = await comments.add(id, content);
      assert.equal((await comments.find(comment?.id ?? ''))?.content, content, content);
    }
  });
}

test('STORE_URL is one that a driver knows, and a store in memory by default', async () => {
  for (const url of ['', 'memory:']) {
    const store = await openStore(url, driverOptions());
    assert.equal((await allOf(store.posts.all)).length, 3, url);
  }
  const good = ['', 'memory:', 'sqlite:///a.db', 'postgres://h/d', 'postgresql://u:p@h:1/d'];
  for (const url of good) assert.equal(readConfig({ STORE_URL: url }).storeUrl, url, url);
  for (const url of ['sqlite://a.db', 'sqlite:///', 'mysql://h/d', 'postgres:', 'x']) {
    assert.throws(
      () => readConfig({ STORE_URL: url }),
      { message: /^STORE_URL must be memory:/ },
      url,
    );
  }
  await assert.rejects(openStore('sqlite:///%zz', driverOptions()), { message: /^STORE_URL: / });
});
