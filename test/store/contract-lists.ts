/** What every driver keeps of lists that are read by pages: part of contract.test.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Store } from '../../dist/store/store.js';
import { allOf, pluck, times } from '../support/lists.ts';
import { text } from './contract-posts.ts';

/** `open` gives a store that holds no posts. */
export function testLists(open: (context: TestContext) => Promise<Store>): void {
  test('a list is read by pages, each behind the record before it', async (t) => {
    const { posts, comments } = await open(t);
    const made = [];
    for (const count of times(7)) made.push(await posts.create(text(`${count}`)));
    const newestFirst = made.toReversed();
    const first = await posts.all.read({ limit: 3 });
    assert.deepEqual(first.records, newestFirst.slice(0, 3));
    const second = await first.next?.();
    assert.deepEqual(second?.records, newestFirst.slice(3, 6));
    const third = await second?.next?.();
    assert.deepEqual([third?.records, third?.next], [newestFirst.slice(6), undefined]);
    const exact = await posts.all.read({ limit: 7 });
    assert.deepEqual([exact.records.length, exact.next], [7, undefined]);
    const behind = await posts.all.read({ after: newestFirst[4]?.id, limit: 9 });
    assert.deepEqual(behind.records, newestFirst.slice(5));
    assert.deepEqual((await posts.all.read({ after: newestFirst[6]?.id })).records, []);

    const [{ id } = assert.fail()] = made;
    const added = [];
    for (const count of times(5)) added.push(await comments.add(id, `${count}`));
    const page = await comments.ofPost(id).read({ after: added[1]?.id, limit: 2 });
    assert.deepEqual(page.records, added.slice(2, 4));
    assert.deepEqual((await page.next?.())?.records, added.slice(4));
  });

  test('a page goes on where the record before it has gone', async (t) => {
    const { posts } = await open(t);
    const made = [];
    for (const count of times(6)) made.push(await posts.create(text(`${count}`)));
    const newestFirst = made.toReversed();
    const page = await posts.all.read({ limit: 2 });
    for (const at of [0, 1, 2]) await posts.remove(newestFirst[at]?.id ?? '');
    await posts.create(text('newer'));
    assert.deepEqual((await page.next?.())?.records, newestFirst.slice(3, 5));
    const after = newestFirst[1]?.id;
    assert.deepEqual((await posts.all.read({ after, limit: 2 })).records, newestFirst.slice(3, 5));
    const beforeAll = made[0]?.id;
    await posts.remove(beforeAll ?? '');
    assert.deepEqual((await posts.all.read({ after: beforeAll })).records, []);
  });

  test('a list of many pages gives each record once', async (t) => {
    const { posts } = await open(t);
    const made = await Promise.all(times(1_003).map(async (at) => posts.create(text(`${at}`))));
    const listed = pluck(await allOf(posts.all), 'id');
    assert.deepEqual(listed.toSorted(), pluck(made, 'id').toSorted());
    // Where nobody says how many.
    assert.equal((await posts.all.read()).records.length, 500);
  });

  test('lists of many owners are read at the same time, long ones too', async (t) => {
    const store = await open(t);
    const { posts, comments } = store;
    const author = '00000000-0000-4000-8000-000000000001';
    const long = 'x'.repeat(900_000);
    const made: { readonly id: string; readonly count: number }[] = [];
    for (const [at, count] of [0, 1, 49, 50, 51, 510, 3].entries()) {
      const { id } = await posts.create({ title: 'a', content: long, authorId: author });
      await Promise.all(times(count).map(async () => comments.add(id, `${at}`)));
      if (count === 3) await comments.add(id, long);
      made.push({ id, count: count === 3 ? 4 : count });
    }
    const [first] = made;
    // A page of a database ends after a mebibyte.
    const length = store.storedAccounts === undefined ? 7 : 2;
    assert.equal((await posts.all.read()).records.length, length);
    await Promise.all([
      ...made.map(async ({ id, count }) => {
        assert.equal((await allOf(comments.ofPost(id))).length, count);
        const { records, next } = await comments.ofPost(id).read({ limit: 2 });
        assert.equal(records.length, Math.min(2, count));
        assert.equal(next !== undefined, count > 2);
      }),
      ...made.map(async ({ id }) => assert.equal((await posts.find(id))?.content, long)),
      (async () => assert.equal((await allOf(posts.ofAuthor(author))).length, made.length))(),
      (async () => assert.deepEqual(await allOf(comments.ofPost(author)), []))(),
      (async () => assert.equal(await posts.find(author), undefined))(),
      ...made.map(async ({ id }, at) => {
        const { records } = await posts.all.read({ after: id, limit: 1 });
        if (at > 0) assert.equal(records[0]?.id, made[at - 1]?.id);
        else assert.notEqual(records[0]?.id, first?.id);
      }),
    ]);
  });
}

/** `open` gives a store that holds nothing of what is listed. */
export function testPages(open: (context: TestContext) => Promise<Store>): void {
  test('a page stays as it was read, whatever is written meanwhile', async (t) => {
    const { posts, comments, articles, todos } = await open(t);
    const { id } = await posts.create(text('post'));
    for (const count of times(3)) await comments.add(id, `${count}`);
    const lists = [posts.all, comments.ofPost(id), articles.all, todos.all];
    const pages = await Promise.all(lists.map(async (list) => (await list.read()).records));
    const before = structuredClone(pages);
    assert.equal(before[1]?.length, 3);
    await comments.remove([before[1]?.[0]?.id as string]);
    await comments.add(id, 'later');
    await articles.save({ id: 0, json: '{"id":0,"title":"in front"}' });
    await todos.create({ title: 'later', completed: false });
    await posts.create(text('later'));
    assert.deepEqual(pages, before);
  });
}
