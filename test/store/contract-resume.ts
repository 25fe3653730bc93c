/** What every driver keeps of comments after a place (R41): part of contract.test.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import type { PlacedComment } from '../../dist/store/comments-after.js';
import type { Comment } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { pluck, times } from '../support/lists.ts';
import { made } from '../support/made.ts';
import { until } from '../support/until.ts';
import { text } from './contract-posts.ts';

/** A store without posts, which ends with the test. */
type Open = (context: TestContext) => Promise<Store>;

const nobody = '00000000-0000-7000-8000-0000000000ff';

export function testResume(open: Open): void {
  test('comments after a place come in the order stored, of all posts or of one (R41)', async (t) => {
    const { posts, comments } = await open(t);
    t.after(comments.watch(() => undefined));
    const [a, b] = [made(await posts.create(text('a'))), made(await posts.create(text('b')))];
    const stored: Comment[] = [];
    for (const at of times(9))
      stored.push(made(await comments.add(at % 3 === 0 ? b.id : a.id, `${at} \0`)));
    /** All comments after one, read in pages of two. */
    const after = async (id: string, postId?: string): Promise<readonly Comment[]> => {
      const found: Comment[] = [];
      let place = await comments.placeOf(id);
      for (;;) {
        assert.ok(place);
        const page = await comments.after(place, { postId, limit: 2 });
        assert.ok(page.found.length <= 2);
        found.push(...pluck(page.found, 'comment'));
        place = page.found.at(-1)?.place ?? place;
        if (page.isLast) return found;
      }
    };
    const [first, , , fourth] = pluck(stored, 'id');
    const of = (post: string): readonly Comment[] => stored.filter(({ postId }) => postId === post);
    assert.deepEqual(await after(first ?? ''), stored.slice(1));
    assert.deepEqual(await after(fourth ?? ''), stored.slice(4));
    assert.deepEqual(await after(stored.at(-1)?.id ?? ''), []);
    assert.deepEqual(await after(first ?? '', a.id), of(a.id));
    assert.deepEqual(await after(first ?? '', b.id), of(b.id).slice(1));
    assert.deepEqual(await after(first ?? '', nobody), []);

    assert.equal(await comments.placeOf(nobody), undefined);
    const place = await comments.placeOf(fourth ?? '');
    assert.ok(place);
    assert.equal(await comments.remove([fourth ?? '']), true);
    assert.equal(await comments.placeOf(fourth ?? ''), undefined);
    // A place outlives its comment.
    const page = await comments.after(place, { postId: undefined, limit: 100 });
    assert.deepEqual(pluck(page.found, 'comment'), stored.slice(4));
    assert.deepEqual(await after(first ?? ''), stored.toSpliced(3, 1).slice(1));
    await posts.remove(b.id);
    assert.deepEqual(await after(stored[1]?.id ?? ''), of(a.id).slice(1));
    assert.equal(await comments.placeOf(first ?? ''), undefined);
  });

  test('a comment is in a page, or told after its read, with its place (R41)', async (t) => {
    const { posts, comments } = await open(t);
    const { id } = made(await posts.create(text('a')));
    const first = made(await comments.add(id, 'first'));
    const heard: PlacedComment[] = [];
    t.after(comments.watch((placed) => void heard.push(placed)));
    const stored = new Set<string>([]);
    const writing = Promise.all(
      times(60).map(async (at) => void stored.add(made(await comments.add(id, `${at}`)).id)),
    );
    const found: PlacedComment[] = [];
    let before = 0;
    let place = await comments.placeOf(first.id);
    for (let count = 0; count < 10; count += 1) {
      await nextIteration();
      assert.ok(place !== undefined, `round ${count}`);
      before = heard.length;
      const page = await comments.after(place, { postId: id, limit: 10 });
      found.push(...page.found);
      place = page.found.at(-1)?.place ?? place;
      if (page.isLast && count > 3) break;
    }
    await writing;
    const last = place;
    assert.ok(last !== undefined);
    const live = (): PlacedComment[] => heard.slice(before).filter((each) => each.place > last);
    await until('all comments', () => found.length + live().length >= 60);
    const all = [...found, ...live()];
    assert.equal(all.length, 60);
    assert.deepEqual(new Set(all.map(({ comment }) => comment.id)), stored);
    const places = all.map((each) => each.place);
    const seen = places;
    assert.deepEqual(
      seen,
      places.toSorted((a, b) => (a < b ? -1 : 1)),
    );
  });
}
