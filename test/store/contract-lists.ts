/** What every driver keeps of lists that are read by pages: part of the suite in contract.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Store } from '../../dist/store/store.js';
import { allOf } from '../support/lists.js';

const text = (title: string): { title: string; content: string; authorId: null } => {
  return { title, content: `${title} content`, authorId: null };
};

/** `open` gives a store that holds no posts. */
export function testLists(open: (context: TestContext) => Promise<Store>): void {
  test('a list is read by pages, each behind the record before it', async (t) => {
    const { posts, comments } = await open(t);
    const made = [];
    for (let count = 0; count < 7; count += 1) made.push(await posts.create(text(`${count}`)));
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
    for (let count = 0; count < 5; count += 1) added.push(await comments.add(id, `${count}`));
    const page = await comments.ofPost(id).read({ after: added[1]?.id, limit: 2 });
    assert.deepEqual(page.records, added.slice(2, 4));
    assert.deepEqual((await page.next?.())?.records, added.slice(4));
  });

  test('a page goes on where the record before it has gone', async (t) => {
    const { posts } = await open(t);
    const made = [];
    for (let count = 0; count < 6; count += 1) made.push(await posts.create(text(`${count}`)));
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
    const made = await Promise.all(
      Array.from({ length: 1_003 }, async (_, at) => posts.create(text(`${at}`))),
    );
    const listed = (await allOf(posts.all)).map(({ id }) => id);
    assert.equal(listed.length, 1_003);
    assert.deepEqual(listed.toSorted(), made.map(({ id }) => id).toSorted());
  });

  test('related records are found at once up to some mebibytes', async (t) => {
    const { posts, comments, related } = await open(t);
    if (related === undefined) return;
    const author = '00000000-0000-4000-8000-000000000001';
    const long = 'x'.repeat(900_000);
    const { id } = await posts.create({ title: 'a', content: long, authorId: author });
    const both = async (): Promise<readonly (number | undefined)[]> => [
      (await related.commentsOfPosts([id], 1_000))?.get(id)?.length,
      (await related.postsOfAuthors([author], 1_000))?.get(author)?.length,
    ];
    const addBoth = async (content: string): Promise<void> => {
      await comments.add(id, content);
      await posts.create({ title: 'a', content, authorId: author });
    };
    await comments.add(id, long);
    for (let count = 0; count < 3; count += 1) await addBoth(long);
    assert.deepEqual(await both(), [4, 4]);
    await addBoth(long);
    assert.deepEqual(await both(), [undefined, undefined]);
    // Of many the first page alone is short enough.
    const other = await posts.create(text('b'));
    await Promise.all(Array.from({ length: 510 }, async () => comments.add(other.id, 'short')));
    assert.equal((await related.commentsOfPosts([other.id], 1_000))?.get(other.id)?.length, 510);
    for (let count = 0; count < 5; count += 1) await comments.add(other.id, long);
    assert.equal(await related.commentsOfPosts([other.id], 1_000), undefined);
    assert.equal((await allOf(comments.ofPost(other.id))).length, 515);
  });
}
