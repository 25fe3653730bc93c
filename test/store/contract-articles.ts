/** What every driver keeps of articles (R14, R15, R16): part of contract.test.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Article } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { changing, toArticle, toDraft, valueOf } from '../support/article-texts.ts';
import { allOf, pluck, times } from '../support/lists.ts';
import { made } from '../support/made.ts';

/** A store that holds these articles, and ends with the test. */
type ArticlesFactory = (context: TestContext, articles: readonly Article[]) => Promise<Store>;

export function testArticles(open: ArticlesFactory): void {
  const given: readonly Article[] = [
    { id: 1, title: 'one' },
    { id: 2, title: 'two' },
  ].map(toArticle);

  test('the counter takes the next value that is free, and overwrites nothing (R15)', async (t) => {
    const { articles } = await open(t, given);
    const save = async (title: string, id?: number): Promise<number> =>
      made(await articles.save(toDraft({ title, ...(id !== undefined && { id }) }))).id;
    const titleOf = async (id: number): Promise<unknown> => valueOf(await articles.find(id))?.title;
    const ids = [await save('a'), await save('b', 5), await save('c'), await save('d')];
    assert.deepEqual(ids, [3, 5, 4, 6]);
    assert.equal(await titleOf(5), 'b');
    assert.equal(await save('e', 5), 5);
    assert.equal(await titleOf(5), 'e');
    const largest = Number.MAX_SAFE_INTEGER;
    assert.deepEqual([await save('f', largest), await save('g')], [largest, 7]);
  });

  test('an article is created once, and its id is not given again (R15)', async (t) => {
    const { articles } = await open(t, given);
    const numbered = made(await articles.save(toDraft({ title: 'a' })));
    const { id, json } = numbered;
    assert.equal(await articles.create(numbered), undefined);
    assert.equal(await articles.remove(id, { expected: toArticle({ id, title: 'b' }) }), false);
    assert.equal(await articles.remove(id, { expected: { id, json } }), true);
    assert.equal(await articles.remove(id), false);
    assert.deepEqual(pluck(await allOf(articles.all), 'id'), [1, 2]);
    const created = await Promise.all(times(6).map(async () => articles.create(numbered)));
    assert.equal(created.filter(Boolean).length, 1);
    assert.equal(await articles.remove(id), true);
    assert.equal(made(await articles.save(toDraft({ title: 'c' }))).id, id + 1);
  });

  test('parallel saves without an id get an id each', async (t) => {
    const { articles } = await open(t, []);
    // Every third has one of its own.
    const saved = await Promise.all(
      times(75).map(async (at) => {
        const id = at % 3 === 0 ? { id: at + 1_000 } : {};
        return articles.save(toDraft({ title: `${at}`, ...id }));
      }),
    );
    assert.equal(new Set(pluck(saved, 'id')).size, 75);
    const own = times(25).map((at) => 3 * at + 1_000);
    const listed = pluck(await allOf(articles.all), 'id');
    assert.deepEqual(listed, [...times(50).map((at) => at + 1), ...own]);
  });

  test('a change is one act: parallel ones lose nothing (R16)', async (t) => {
    const { articles } = await open(t, given);
    const increment = changing((value) => ({ ...value, n: Number(value['n'] ?? 0) + 1 }));
    await Promise.all([
      ...times(25).map(() => articles.change(1, increment)),
      ...times(25).map(() => articles.changeAll((all) => all.map(increment))),
    ]);
    assert.equal(valueOf(await articles.find(1))?.['n'], 50);
    assert.equal(valueOf(await articles.find(2))?.['n'], 25);
  });

  test('all articles are changed at once up to 4 MiB, on every store (R39)', async (t) => {
    /** Of so many bytes as JSON, of which a change of `n` takes none. */
    const ofBytes = (bytes: number, id: number): Article => {
      const { json } = toArticle({ id, title: '', n: 0 });
      return toArticle({ id, title: 'x'.repeat(bytes - json.length), n: 0 });
    };
    const mebibyte = 1_048_576;
    const four = [1, 2, 3, 4].map((id) => ofBytes(mebibyte, id));
    const { articles } = await open(t, four);
    const change = async (n: number): Promise<unknown> =>
      articles.changeAll((all) => all.map(changing({ n })));
    await change(1);
    await articles.save(ofBytes(mebibyte + 1, 4));
    await assert.rejects(change(2), { code: 'content_too_large' });
    assert.equal(valueOf(await articles.find(1))?.['n'], 1);
    await articles.change(4, changing({ n: 3 }));
    assert.equal(valueOf(await articles.find(4))?.['n'], 3);
    await articles.save(ofBytes(mebibyte, 4));
    await articles.save(toArticle({ id: 5, title: 'short' }));
    await assert.rejects(change(2), { code: 'content_too_large' });
    // One that becomes shorter makes room.
    await articles.save(ofBytes(1_000, 4));
    await change(4);
    const changed = (await allOf(articles.all)).map((article) => valueOf(article)?.['n']);
    assert.deepEqual(changed, [4, 4, 4, 4, 4]);
  });

  test('a change that throws changes nothing, and tells what was thrown', async (t) => {
    const { articles, posts } = await open(t, given);
    const fail = (): never => {
      throw new RangeError('no');
    };
    const other = posts.create({ title: 'beside it', content: 'x', authorId: null });
    await assert.rejects(async () => articles.change(1, fail), RangeError);
    await assert.rejects(async () => articles.changeAll(fail), RangeError);
    assert.deepEqual(await allOf(articles.all), given);
    assert.ok(await posts.find((await other).id));
    assert.equal(await articles.change(3, fail), undefined);
  });
}
