/** What every driver keeps of articles (R14, R15, R16): part of the suite in contract.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Article } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { allOf } from '../support/lists.js';

/** A store that holds these articles, and ends with the test. */
type ArticlesFactory = (context: TestContext, articles: readonly Article[]) => Promise<Store>;

export function testArticles(open: ArticlesFactory): void {
  const given: readonly Article[] = [
    { id: 1, title: 'one' },
    { id: 2, title: 'two' },
  ];

  test('the counter takes the next value that is free, and overwrites nothing (R15)', async (t) => {
    const { articles } = await open(t, given);
    const ids = [];
    ids.push((await articles.save({ title: 'a' })).id);
    ids.push((await articles.save({ title: 'b', id: 5 })).id);
    ids.push((await articles.save({ title: 'c' })).id);
    ids.push((await articles.save({ title: 'd' })).id);
    assert.deepEqual(ids, [3, 5, 4, 6]);
    assert.equal((await articles.find(5))?.title, 'b');
    assert.equal((await articles.save({ title: 'e', id: 5 })).id, 5);
    assert.equal((await articles.find(5))?.title, 'e');
    const largest = Number.MAX_SAFE_INTEGER;
    assert.equal((await articles.save({ title: 'f', id: largest })).id, largest);
    assert.equal((await articles.save({ title: 'g' })).id, 7);
  });

  test('parallel saves without an id get an id each', async (t) => {
    const { articles } = await open(t, []);
    const saved = await Promise.all(
      Array.from({ length: 50 }, async (_, at) => articles.save({ title: `${at}` })),
    );
    assert.equal(new Set(saved.map(({ id }) => id)).size, 50);
    const listed = (await allOf(articles.all)).map(({ id }) => id);
    assert.deepEqual(
      listed,
      Array.from({ length: 50 }, (_, at) => at + 1),
    );
  });

  test('open documents come back as they came (R14)', async (t) => {
    const { articles } = await open(t, []);
    const draft = {
      title: 't',
      nested: { list: [1, null, 'x', { y: [] }], constructor: 'c', '': 0 },
      small: 5e-324,
      large: 1.7976931348623157e308,
      flag: false,
    };
    const saved = await articles.save(draft);
    assert.deepEqual(await articles.find(saved.id), { ...draft, id: saved.id });
  });

  test('a change is one act: parallel ones lose nothing (R16)', async (t) => {
    const { articles } = await open(t, [{ id: 1, title: 't', n: 0 }]);
    const increment = (article: Article): Article => ({ ...article, n: Number(article['n']) + 1 });
    await Promise.all([
      ...Array.from({ length: 25 }, () => articles.change(1, increment)),
      ...Array.from({ length: 25 }, () => articles.changeAll((all) => all.map(increment))),
    ]);
    assert.equal((await articles.find(1))?.['n'], 50);
  });

  test('all articles are changed at once up to some mebibytes', async (t) => {
    const { articles } = await open(t, []);
    const long = 'x'.repeat(900_000);
    const change = async (n: number): Promise<void> =>
      articles.changeAll((all) => all.map((one) => ({ ...one, n })));
    for (let count = 0; count < 4; count += 1) await articles.save({ title: long });
    await change(1);
    await articles.save({ title: long });
    // A store whose records are in memory anyway has no bound.
    const isHeld = await change(2).then(
      () => true,
      (error: unknown) => {
        assert.equal((error as { readonly code?: unknown }).code, 'content_too_large');
        return false;
      },
    );
    assert.equal((await articles.find(1))?.['n'], isHeld ? 2 : 1);
    await articles.change(5, (one) => ({ ...one, n: 3 }));
    assert.equal((await articles.find(5))?.['n'], 3);
  });

  test('a change that throws changes nothing', async (t) => {
    const { articles } = await open(t, given);
    const fail = (): never => {
      throw new Error('no');
    };
    await assert.rejects(async () => articles.change(1, fail), /no/);
    await assert.rejects(async () => articles.changeAll(fail), /no/);
    assert.deepEqual(await allOf(articles.all), given);
    assert.equal(await articles.change(3, fail), undefined);
  });
}
