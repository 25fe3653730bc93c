/** Comments that wait until they are approved (R48), on each store. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { InitialData, Store } from '../../dist/store/store.js';
import type { Comment } from '../../dist/store/model.js';
import { allOf, times } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { made } from '../support/made.ts';
import { until } from '../support/until.ts';
import { text } from './contract-posts.ts';

type Open = (context: TestContext, initial?: Partial<InitialData>) => Promise<Store>;

const isPending = true;
const nobody = '00000000-0000-7000-8000-0000000000ff';
const contentsOf = (comments: readonly Comment[]): string =>
  comments.map(({ content }) => content).join(' ');

export function testPending(open: Open): void {
  const fill = async (t: TestContext) => {
    const store = await open(t);
    const post = made(await store.posts.create(text('a')));
    const other = made(await store.posts.create(text('b')));
    const heard: string[] = [];
    store.comments.watch(({ comment: { content } }) => heard.push(content));
    await store.comments.ready?.();
    const add = async (content: string, options = {}, on = post.id): Promise<string> =>
      made(await store.comments.add(on, content, options)).id;
    return { store, comments: store.comments, post: post.id, other: other.id, heard, add };
  };
  /** What is read of all comments but those that wait. */
  const seen = async ({ comments }: Store, post: string, waiting: string) => ({
    found: await comments.find(waiting),
    place: await comments.placeOf(waiting),
    ofPost: contentsOf(await allOf(comments.ofPost(post))),
    all: contentsOf(await allOf(comments.all)),
    after: (await comments.after(0, { postId: undefined, limit: 100 })).found.length,
  });

  test('have no place, and are in no list but their own', async (t) => {
    const { store, post, other, heard, add } = await fill(t);
    await add('a');
    const before = await seen(store, post, nobody);
    const by = { name: 'Ann \ud800', authorId: nobody };
    const first = await add('w1', { isPending, ...by });
    const second = await add('w2', { isPending }, other);
    const third = await add('w3', { isPending });
    for (const waiting of [first, third])
      assert.deepEqual(await seen(store, post, waiting), before);
    const { pending } = store.comments;
    const { createdAt, ...found } = made(await pending.find(first));
    assert.deepEqual(found, { id: first, content: 'w1', postId: post, ...by });
    assert.ok(createdAt);
    assert.equal(contentsOf(await allOf(pending.all)), 'w3 w2 w1');
    assert.equal(contentsOf(await allOf(pending.ofPost(post))), 'w1 w3');
    assert.equal(contentsOf((await pending.all.read({ after: third, limit: 1 })).records), 'w2');
    assert.equal(await store.comments.add(nobody, 'w', { isPending }), undefined);
    assert.equal(await store.comments.remove([second]), true);
    assert.equal(await pending.find(second), undefined);
    await add('b');
    await until('the comment', () => heard.length === 2);
    assert.deepEqual(heard, ['a', 'b']);
  });

  test('get their place when they are approved, once, with their id and date', async (t) => {
    const { comments, post, heard, add } = await fill(t);
    const waiting = await add('w', { isPending, name: 'Ann', authorId: nobody });
    const later = await add('later', { isPending });
    const before = await add('a');
    const comment = await comments.pending.find(waiting);
    const approvals = await Promise.all(times(3).map(async () => comments.approve(waiting)));
    // False: it got its place right then.
    assert.ok(approvals.includes(true));
    for (const placed of [waiting, before]) assert.equal(await comments.approve(placed), true);
    assert.equal(await comments.approve(nobody), false);
    await add('b');
    assert.deepEqual(await comments.find(waiting), comment);
    assert.equal(contentsOf(await allOf(comments.ofPost(post))), 'a w b');
    assert.equal(contentsOf(await allOf(comments.all)), 'b w a');
    assert.equal(contentsOf(await allOf(comments.pending.all)), 'later');
    await until('all', () => heard.length === 3);
    assert.deepEqual(heard, ['a', 'w', 'b']);
    // Pages begin after it where it is now, in each order, also on pages of one.
    const ofPost = await comments.ofPost(post).read({ after: waiting });
    assert.equal(contentsOf(ofPost.records), 'b');
    assert.equal(contentsOf((await comments.all.read({ after: waiting })).records), 'a');
    const place = made({ place: await comments.placeOf(before) }).place ?? 0;
    const page = await comments.after(place, { postId: post, limit: 1 });
    assert.equal(contentsOf(page.found.map((each) => each.comment)), 'w');
    const next = await comments.after(page.found[0]?.place ?? 0, { postId: post, limit: 1 });
    assert.equal(contentsOf(next.found.map((each) => each.comment)), 'b');
    assert.equal(await comments.approve(later), true);
    assert.equal(contentsOf(await allOf(comments.ofPost(post))), 'a w b later');
    assert.equal(await comments.remove([waiting]), true);
    assert.equal(contentsOf(await allOf(comments.ofPost(post))), 'a b later');
  });

  test('skip no comment where a page begins after one that was removed', async (t) => {
    const { comments, post, add } = await fill(t);
    const early = await add('early', { isPending });
    const [a, b] = [await add('a'), await add('b')];
    const gone = await add('gone');
    const late = await add('late', { isPending });
    await add('c');
    const last = await add('last', { isPending });
    await add('d');
    for (const waiting of [last, early, late]) assert.equal(await comments.approve(waiting), true);
    assert.equal(contentsOf(await allOf(comments.ofPost(post))), 'a b gone c d last early late');
    const after = async (id: string) => ({
      ofPost: contentsOf((await comments.ofPost(post).read({ after: id })).records),
      all: contentsOf((await comments.all.read({ after: id })).records),
    });
    assert.deepEqual(await after(early), { ofPost: 'late', all: 'last d c gone b a' });
    assert.equal(await comments.remove([gone]), true);
    assert.deepEqual(await after(gone), { ofPost: 'c d last early late', all: 'b a' });
    assert.equal(await comments.remove([a]), true);
    assert.deepEqual(await after(a), { ofPost: 'b c d last early late', all: '' });
    assert.equal(await comments.remove([b]), true);
    assert.deepEqual(await after(gone), { ofPost: 'c d last early late', all: '' });
  });

  test('are removed with others, all or none, and with their post', async (t) => {
    const { store, comments, post, other, add } = await fill(t);
    const placed = [await add('a'), await add('b'), await add('c', {}, other)];
    const waiting = [await add('w', { isPending }), await add('x', { isPending }, other)];
    const [a = '', , c = ''] = placed;
    const [w = '', x = ''] = waiting;
    const all = async () =>
      contentsOf([...(await allOf(comments.all)), ...(await allOf(comments.pending.all))]);
    assert.equal(await comments.remove([a, w, nobody]), false);
    assert.equal(await all(), 'c b a x w');
    const removals = await Promise.all([
      comments.remove([a, c, w]),
      comments.remove([w, a, c]),
      comments.approve(w),
    ]);
    assert.equal(removals.slice(0, 2).filter((each) => each === true).length <= 1, true);
    if (removals.slice(0, 2).every((each) => each === false))
      assert.equal(await comments.remove([a, c, w]), true);
    assert.equal(await all(), 'b x');
    assert.equal(await store.posts.remove(other), true);
    assert.equal(await comments.pending.find(x), undefined);
    assert.equal(await comments.approve(x), false);
    assert.equal(await all(), 'b');
    assert.equal(await store.posts.remove(post), true);
    assert.equal(await all(), '');
  });

  test('of one post may be very many', async (t) => {
    const { store, post, other, add } = await fill(t);
    const kept = await add('kept', { isPending }, other);
    const count = isLong ? 4_100 : 1_600;
    await Promise.all(times(count).map(async (at) => add(`${at}`, { isPending })));
    assert.equal((await allOf(store.comments.pending.ofPost(post))).length, count);
    const some = (await store.comments.pending.all.read({ limit: 500 })).records;
    assert.equal(await store.comments.remove(some.map(({ id }) => id)), true);
    assert.equal((await allOf(store.comments.pending.ofPost(post))).length, count - 500);
    assert.equal(await store.posts.remove(post), true);
    const found = (await allOf(store.comments.pending.all)).map(({ id }) => id);
    assert.deepEqual(found, [kept]);
  });
}
