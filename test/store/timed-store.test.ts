/** Calls of a store, and how they are told of. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timeStore } from '../../dist/store/timed-store.js';
import type { Store } from '../../dist/store/store.js';

type Told = [area: string, kind: string];

/** A store whose posts are these, and what is told of it. */
function watch(
  posts: object,
  loginFailures?: object,
): { readonly store: Store; readonly told: Told[] } {
  const told: Told[] = [];
  const area = {};
  const plain = { posts, comments: area, authors: area, accounts: area, todos: area };
  const whole = { ...plain, articles: area, loginFailures } as unknown as Store;
  const store = timeStore(whole, (name, kind, ms) => {
    assert.ok(ms >= 0);
    told.push([name, kind]);
  });
  return { store, told };
}

test('a call is told of when it has an answer, or fails', async () => {
  const failure = new Error('away');
  const { store, told } = watch({
    find: (id: string) => (id === 'now' ? { id } : Promise.resolve({ id })),
    create: () => Promise.reject(failure),
    remove() {
      throw failure;
    },
  });
  assert.deepEqual(store.posts.find('now'), { id: 'now' });
  assert.deepEqual(told, [['posts', 'read']]);
  const later = store.posts.find('later');
  assert.equal(told.length, 1);
  assert.deepEqual(await later, { id: 'later' });
  assert.equal(told.length, 2);
  await assert.rejects(async () => store.posts.create({} as never), failure);
  assert.throws(() => store.posts.remove(''), failure);
  assert.deepEqual(told.slice(2), [
    ['posts', 'write'],
    ['posts', 'write'],
  ]);
});

test('failed logins are a part of it', async () => {
  const { store, told } = watch({}, { find: () => new Map(), takeTurn: () => Promise.resolve(1) });
  store.loginFailures?.find([]);
  assert.equal(await store.loginFailures?.takeTurn('a', 1), 1);
  assert.deepEqual(told, [
    ['loginFailures', 'read'],
    ['loginFailures', 'write'],
  ]);
});

test('each page of a list is a call, also of a list of a record', async () => {
  const pages = {
    read: () => ({ records: [1], next: () => Promise.resolve({ records: [2], next: undefined }) }),
    exceeds: () => false,
  };
  const { store, told } = watch({ all: pages, ofAuthor: () => pages });
  for (const list of [store.posts.all, store.posts.ofAuthor('a')]) {
    told.length = 0;
    const first = await list.read();
    const second = await first.next?.();
    assert.deepEqual([first.records, second?.records, second?.next], [[1], [2], undefined]);
    assert.equal(told.length, 2);
    assert.equal(await list.exceeds(1), false);
    assert.equal(told.length, 3);
  }
});

test('what is not there is still not there', () => {
  assert.equal(watch({}).store.related, undefined);
  assert.equal(watch({}).store.loginFailures, undefined);
  assert.equal(watch({}).store.comments.watch, undefined);
});
