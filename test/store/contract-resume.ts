/** What every driver keeps of comments after a place (R41): part of contract.test.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
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
    const stop = comments.watch?.(() => undefined);
    t.after(() => stop?.());
    const [a, b] = [made(await posts.create(text('a'))), made(await posts.create(text('b')))];
    const stored: Comment[] = [];
    for (const at of times(9)) {
      stored.push(made(await comments.add(at % 3 === 0 ? b.id : a.id, `${at} \0`)));
    }
    let cuts = 0;
    const onCut = (): void => void (cuts += 1);
    /** All comments after one, read in pages of two. */
    const after = async (id: string, postId?: string): Promise<readonly Comment[]> => {
      const found: Comment[] = [];
      let place = await comments.placeOf(id);
      for (;;) {
        assert.ok(place);
        const page = await comments.after(place, { postId, limit: 2, onCut });
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
    assert.ok(cuts >= 12);

    assert.equal(await comments.placeOf(nobody), undefined);
    const place = await comments.placeOf(fourth ?? '');
    assert.ok(place);
    assert.equal(await comments.remove(fourth ?? ''), true);
    assert.equal(await comments.placeOf(fourth ?? ''), undefined);
    // A place outlives its comment.
    const page = await comments.after(place, { postId: undefined, limit: 100, onCut });
    assert.deepEqual(pluck(page.found, 'comment'), stored.slice(4));
    assert.deepEqual(await after(first ?? ''), stored.toSpliced(3, 1).slice(1));
    await posts.remove(b.id);
    assert.deepEqual(await after(stored[1]?.id ?? ''), of(a.id).slice(1));
    assert.equal(await comments.placeOf(first ?? ''), undefined);
  });

  test('a comment is in a page, or announced after its cut, never both (R41)', async (t) => {
    const { posts, comments } = await open(t);
    const { id } = made(await posts.create(text('a')));
    const first = made(await comments.add(id, 'first'));
    const heard: string[] = [];
    const stop = comments.watch?.((comment) => heard.push(comment.id));
    t.after(() => stop?.());
    const stored = new Set<string>();
    const writing = Promise.all(
      times(60).map(async (at) => {
        const added = made(await comments.add(id, `${at}`));
        stored.add(added.id);
        // Where nobody is told, the caller of `add` publishes the comment now.
        if (comments.watch === undefined) heard.push(added.id);
      }),
    );
    const found: string[] = [];
    let cut = 0;
    let place = await comments.placeOf(first.id);
    for (let count = 0; count < 10; count += 1) {
      await nextIteration();
      assert.ok(place, `round ${count}`);
      const page = await comments.after(place, {
        postId: id,
        limit: 10,
        onCut: () => void (cut = heard.length),
      });
      found.push(...page.found.map(({ comment }) => comment.id));
      place = page.found.at(-1)?.place ?? place;
      if (page.isLast && count > 3) break;
    }
    const [seen, before] = [[...found], new Set(heard.slice(0, cut))];
    await writing;
    await until(
      'all comments',
      () => stored.size === 60 && new Set([...seen, ...heard]).size >= 60,
    );
    const live = heard.slice(cut);
    assert.deepEqual(
      seen.filter((other) => live.includes(other)),
      [],
    );
    for (const [at, other] of before.entries())
      if (other !== first.id) assert.ok(seen.includes(other), `number ${at}`);
  });
}
