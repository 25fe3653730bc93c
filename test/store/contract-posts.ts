/** What every driver keeps of posts and their comments: part of contract.test.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Comment, Post } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { allOf, pluck, times } from '../support/lists.ts';
import { made } from '../support/made.ts';

/** A store without posts that has the author `ada`, and ends with the test. */
type Open = (context: TestContext) => Promise<Store>;

const ada = '00000000-0000-7000-8000-00000000000a';
const nobody = '00000000-0000-7000-8000-0000000000ff';

export const text = (title: string): { title: string; content: string; authorId: null } => {
  return { title, content: `${title} content`, authorId: null };
};

export function testPosts(open: Open): void {
  test('a post that was created is found, as a draft with an id and a date', async (t) => {
    const { posts } = await open(t);
    const post = made(await posts.create({ title: 'a', content: 'b', authorId: ada }));
    const { id, createdAt, ...rest } = post;
    const draft = { title: 'a', content: 'b', status: 'DRAFT', authorId: ada, publishedAt: null };
    assert.deepEqual(rest, draft);
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.match(createdAt, /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?$/);
    assert.deepEqual(await posts.find(id), post);
    assert.equal(await posts.find(nobody), undefined);
  });

  test('posts are listed newest first, also when they were made in one moment (R2)', async (t) => {
    const { posts } = await open(t);
    const all = [];
    for (const count of times(50)) all.push(await posts.create(text(`${count}`)));
    assert.deepEqual(await allOf(posts.all), all.toReversed());
  });

  test('a removed post takes its comments with it, and no others (R7)', async (t) => {
    const { posts, comments } = await open(t);
    const post = await posts.create({ ...text('a'), authorId: ada });
    const other = await posts.create({ ...text('b'), authorId: ada });
    const comment = await comments.add(post.id, 'x');
    const kept = await comments.add(other.id, 'y');
    assert.ok(comment && kept);
    assert.equal(await posts.remove(post.id), true);
    assert.equal(await posts.find(post.id), undefined);
    assert.equal(await comments.find(comment.id), undefined);
    assert.deepEqual(await allOf(comments.ofPost(post.id)), []);
    assert.equal(await comments.add(post.id, 'z'), undefined);
    assert.deepEqual(await comments.find(kept.id), kept);
    assert.deepEqual(await allOf(posts.ofAuthor(ada)), [other]);
    assert.equal(await posts.remove(post.id), false);
  });

  test('posts by author and status are a list, which a post leaves for another (R46)', async (t) => {
    const { posts } = await open(t);
    const all: Post[] = [];
    for (const at of times(40)) {
      const authorId = at % 4 === 3 ? null : ada;
      all.unshift(made(await posts.create({ ...text(`${at}`), authorId })));
    }
    const own = all.filter(({ authorId }) => authorId === ada);
    const published = own.filter((_, at) => at % 3 === 0);
    for (const { id } of published) await posts.update(id, { status: 'PUBLISHED' });
    const others = all.filter(({ authorId }) => authorId === null);
    for (const { id } of others.slice(0, 3)) await posts.update(id, { status: 'PUBLISHED' });
    const drafts = own.filter((post) => !published.includes(post));
    const found = pluck(await allOf(posts.ofAuthor(ada, 'PUBLISHED')), 'id');
    assert.deepEqual(found, pluck(published, 'id'));
    assert.deepEqual(await allOf(posts.ofAuthor(ada, 'DRAFT')), drafts);
    assert.equal((await allOf(posts.ofAuthor(ada))).length, own.length);

    // At the same time: joined into one statement, where the store does that.
    const lists = [ada, nobody].flatMap((author) => [
      posts.ofAuthor(author, 'PUBLISHED'),
      posts.ofAuthor(author, 'DRAFT'),
    ]);
    const pages = await Promise.all(lists.map(async (list) => list.read({ limit: 2 })));
    assert.deepEqual(
      pages.map(({ records }) => pluck(records, 'id')),
      [pluck(published.slice(0, 2), 'id'), pluck(drafts.slice(0, 2), 'id'), [], []],
    );
    const [first, second, third] = published;
    const page = await posts.ofAuthor(ada, 'PUBLISHED').read({ after: first?.id, limit: 1 });
    assert.deepEqual(pluck(page.records, 'id'), [second?.id]);
    await posts.update(second?.id ?? '', { status: 'PENDING_MODERATION' });
    await posts.remove(first?.id ?? '');
    assert.equal((await page.next?.())?.records[0]?.id, third?.id);
    const waiting = await allOf(posts.ofAuthor(ada, 'PENDING_MODERATION'));
    assert.deepEqual(pluck(waiting, 'id'), [second?.id]);
  });

  test('a post is changed and removed only as it is expected', async (t) => {
    const { posts } = await open(t);
    const status = 'DRAFT' as const;
    const { title, content } = text('a\0');
    const seen = { title, content, status };
    const change = { title: 'b', content: '', status };
    const { id } = await posts.create(text('a\0'));
    for (const other of [{ title: 'b' }, { content: 'b' }, { status: 'PUBLISHED' as const }]) {
      const expected = { ...seen, ...other };
      assert.equal(await posts.update(id, text('c'), { expected }), false, JSON.stringify(other));
    }
    assert.equal(await posts.remove(id, { expected: change }), false);
    assert.deepEqual({ ...(await posts.find(id)), ...seen }, await posts.find(id));
    assert.equal(await posts.update(id, change, { expected: seen }), true);
    assert.equal(await posts.update(id, text('c'), { expected: seen }), false);
    assert.equal(await posts.remove(id, { expected: seen }), false);
    assert.equal(await posts.remove(id, { expected: change }), true);
    assert.equal(await posts.update(id, change, { expected: change }), false);
  });

  test('of parallel removals of one post one succeeds', async (t) => {
    const { posts } = await open(t);
    const { id } = await posts.create(text('a'));
    const removed = await Promise.all(times(5).map(async () => posts.remove(id)));
    assert.equal(removed.filter(Boolean).length, 1);
  });
}

export function testComments(open: Open): void {
  test('comments are listed oldest first, also when made in one moment (R2)', async (t) => {
    const { posts, comments } = await open(t);
    const { id } = await posts.create(text('a'));
    assert.deepEqual(await allOf(comments.ofPost(id)), []);
    const added = [];
    for (const count of times(50)) added.push(made(await comments.add(id, `${count}`)));
    assert.deepEqual(await allOf(comments.ofPost(id)), added);
    assert.equal(added[0]?.postId, id);
    assert.deepEqual(await comments.find(added[7]?.id ?? ''), added[7]);
  });

  test('a comment on no post is not stored, and what comes beside it is', async (t) => {
    const { posts, comments } = await open(t);
    const create = () => posts.create(text('a'));
    const [first, none, last] = await Promise.all([create(), comments.add(nobody, 'a'), create()]);
    assert.equal(none, undefined);
    for (const { id } of [first, last]) assert.ok(await posts.find(id));
    assert.deepEqual(await allOf(comments.ofPost(nobody)), []);
    assert.equal(await comments.find(nobody), undefined);
  });

  test('no comment stays behind when its post goes at the same time', async (t) => {
    const { posts, comments } = await open(t);
    const { id } = await posts.create(text('a'));
    const adding = times(20).map((at) => comments.add(id, `c${at}`));
    const [removed, ...added] = await Promise.all([posts.remove(id), ...adding]);
    assert.equal(removed, true);
    for (const [at, comment] of added.entries())
      assert.equal(comment && (await comments.find(comment.id)), undefined, `comment ${at}`);
  });

  test('comments are announced in the stored order, if any are', async (t) => {
    const { posts, comments } = await open(t);
    if (comments.watch === undefined) return;
    const { id } = await posts.create(text('a'));
    const heard: Comment[] = [];
    const all = new Promise<void>((resolve) => {
      const stop = comments.watch(({ comment }) => {
        if (heard.push(comment) === 50) resolve();
      });
      t.after(() => stop?.());
    });
    await Promise.all(times(50).map(async (at) => assert.ok(await comments.add(id, `c${at}`))));
    await all;
    assert.deepEqual(heard, await allOf(comments.ofPost(id)));
  });
}
