/** What every driver keeps of articles (R14, R15, R16): part of the suite in contract.ts. */

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Article } from '../../dist/store/model.js';
import type { Store } from '../../dist/store/store.js';
import { changing, toArticle, toDraft, valueOf } from '../support/article-texts.js';
import { allOf } from '../support/lists.js';

/** A store that holds these articles, and ends with the test. */
type ArticlesFactory = (context: TestContext, articles: readonly Article[]) => Promise<Store>;

export function testArticles(open: ArticlesFactory): void {
  const given: readonly Article[] = [
    { id: 1, title: 'one' },
    { id: 2, title: 'two' },
  ].map(toArticle);

  test('the counter takes the next value that is free, and overwrites nothing (R15)', async (t) => {
    const { articles } = await open(t, given);
    const ids = [];
    ids.push((await articles.save(toDraft({ title: 'a' }))).id);
    ids.push((await articles.save(toDraft({ title: 'b', id: 5 }))).id);
    ids.push((await articles.save(toDraft({ title: 'c' }))).id);
    ids.push((await articles.save(toDraft({ title: 'd' }))).id);
    assert.deepEqual(ids, [3, 5, 4, 6]);
    assert.equal(valueOf(await articles.find(5))?.title, 'b');
    assert.equal((await articles.save(toDraft({ title: 'e', id: 5 }))).id, 5);
    assert.equal(valueOf(await articles.find(5))?.title, 'e');
    const largest = Number.MAX_SAFE_INTEGER;
    assert.equal((await articles.save(toDraft({ title: 'f', id: largest }))).id, largest);
    assert.equal((await articles.save(toDraft({ title: 'g' }))).id, 7);
  });

  test('parallel saves without an id get an id each', async (t) => {
    const { articles } = await open(t, []);
    const saved = await Promise.all(
      Array.from({ length: 50 }, async (_, at) => articles.save(toDraft({ title: `${at}` }))),
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
    const saved = await articles.save(toDraft(draft));
    assert.deepEqual(valueOf(await articles.find(saved.id)), { ...draft, id: saved.id });
  });

  test('a change is one act: parallel ones lose nothing (R16)', async (t) => {
    const { articles } = await open(t, [toArticle({ id: 1, title: 't', n: 0 })]);
    const increment = changing((value) => ({ ...value, n: Number(value['n']) + 1 }));
    await Promise.all([
      ...Array.from({ length: 25 }, () => articles.change(1, increment)),
      ...Array.from({ length: 25 }, () => articles.changeAll((all) => all.map(increment))),
    ]);
    assert.equal(valueOf(await articles.find(1))?.['n'], 50);
  });

  test('all articles are changed at once up to 4 MiB, on every store (R39)', async (t) => {
    /** Of so many bytes as JSON, of which a change of `n` takes none. */
    const ofBytes = (bytes: number, id: number): Article => {
      const { json } = toArticle({ id, title: '', n: 0 });
      return toArticle({ id, title: 'x'.repeat(bytes - json.length), n: 0 });
    };
    const mebibyte = 1_048_576;
    const { articles } = await open(
      t,
      [1, 2, 3, 4].map((id) => ofBytes(mebibyte, id)),
    );
    const change = async (n: number): Promise<void> =>
      articles.changeAll((all) => all.map(changing((one) => ({ ...one, n }))));
    await change(1);
    await articles.save(ofBytes(mebibyte + 1, 4));
    await assert.rejects(change(2), { code: 'content_too_large' });
    assert.equal(valueOf(await articles.find(1))?.['n'], 1);
    await articles.change(
      4,
      changing((one) => ({ ...one, n: 3 })),
    );
    assert.equal(valueOf(await articles.find(4))?.['n'], 3);
    await articles.save(ofBytes(mebibyte, 4));
    await articles.save(toArticle({ id: 5, title: 'short' }));
    await assert.rejects(change(2), { code: 'content_too_large' });
    // One that becomes shorter makes room.
    await articles.save(ofBytes(1_000, 4));
    await change(4);
    assert.deepEqual(
      (await allOf(articles.all)).map((article) => valueOf(article)?.['n']),
      [4, 4, 4, 4, 4],
    );
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
