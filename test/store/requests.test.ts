/** How long, where and how many writes under keys are kept (R40), beyond the contract. */

import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { createByteBudget } from '../../dist/store/memory-table.js';
import { createMemoryRequests } from '../../dist/store/memory-requests.js';
import { isRepeated, type Once } from '../../dist/store/once.js';
import { allOf, times } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { made } from '../support/made.ts';
import { database } from '../support/shared-postgres.ts';
import { inSqlite } from '../support/sqlite.ts';
import { durableStores, inSqliteFile, openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { newOnce } from './contract-requests.ts';
import { text } from './contract-posts.ts';

describe('keys in memory', () => {
  const keep = (
    { run }: ReturnType<typeof createMemoryRequests>,
    count: number,
    isAnonymous = false,
  ): readonly Once[] => {
    const keys = times(count).map(() => ({ ...newOnce(), isAnonymous }));
    for (const once of keys) run(once, () => true);
    return keys;
  };

  test('are kept for 24 hours, and the oldest of 100,001 goes', () => {
    let now = 0;
    const requests = createMemoryRequests(undefined, () => now);
    const [first, last] = [keep(requests, 1), keep(requests, 99_999)].map((keys) => keys.at(-1));
    assert.ok(first !== undefined && last !== undefined);
    now = 86_399_999;
    assert.ok(requests.find(first));
    keep(requests, 1);
    assert.equal(requests.find(first), undefined);
    assert.ok(requests.find(last));
    now = 86_400_000;
    assert.equal(requests.find(last), undefined);
    const found = requests.run(last, () => true);
    assert.equal(found, true);
  });

  test('of clients without a token have a tenth, and push out no others', () => {
    const requests = createMemoryRequests(undefined, undefined, 100);
    const [account] = keep(requests, 1) as [Once];
    const [first] = keep(requests, 10, true) as [Once];
    // What is repeated, or stores nothing, uses up nothing.
    requests.run(first, () => true);
    requests.run({ ...newOnce(), isAnonymous: true }, () => false);
    assert.ok(requests.find(first));
    keep(requests, 200, true);
    assert.deepEqual([requests.find(first), typeof requests.find(account)], [undefined, 'object']);
  });

  test('take memory, and make room for themselves when their write is done', () => {
    const take = createByteBudget(1_180);
    const requests = createMemoryRequests(take, Date.now);
    const keys = [keep(requests, 1), keep(requests, 1, true), keep(requests, 1)].flat();
    const kept = (): string =>
      keys.map((once) => (requests.find(once) ? 'kept' : 'gone')).join(' ');
    const isFull = { code: 'storage_full' };
    take(100);
    // A write that is refused, or stores nothing, takes the place of nothing.
    assert.throws(() => requests.run(newOnce(), () => take(1)), isFull);
    const found = requests.run(newOnce(), () => false);
    assert.equal(found, false);
    assert.equal(kept(), 'kept kept kept');
    // Without a token it is one without a token that goes; for an account, these first.
    keep(requests, 1, true);
    assert.equal(kept(), 'kept gone kept');
    keep(requests, 1);
    assert.equal(kept(), 'kept gone kept');
    assert.throws(() => keep(requests, 1, true), isFull);
    keep(requests, 1);
    assert.equal(kept(), 'gone gone kept');
    assert.throws(() => take(1), isFull);
  });
});

for (const place of durableStores) {
  describe(`keys ${place.name}`, { skip: place.skip }, () => {
    const isSqlite = place === inSqliteFile;
    const open = async (t: TestContext) => {
      const url = await place.newUrl(t);
      const store = await openOn(t, url);
      const path = decodeURI(url.slice('sqlite://'.length));
      /** Each statement in the words of the database. */
      const query = async (sqlite: string, postgres: string): Promise<readonly unknown[]> =>
        isSqlite
          ? inSqlite(path, (file) => file.prepare(sqlite).all())
          : database.query(url, postgres);
      const age = (): Promise<unknown> =>
        query(
          'UPDATE requests SET made = made - 86400',
          `UPDATE inkwell.requests SET made = made - interval '1 day'`,
        );
      const count = async (): Promise<number> =>
        (await query('SELECT 1 FROM requests', 'SELECT 1 FROM inkwell.requests')).length;
      return { url, store, query, age, count };
    };

    test('outlive the process', async (t) => {
      const { url, store } = await open(t);
      const [once, change, commit] = times(3).map(newOnce) as [Once, Once, Once];
      const limits = { filesMax: 10, bytesMax: 10 };
      const file = { storedName: 'a', temporaryName: 'b', size: 1 };
      const { id } = made(await store.posts.create(text('a'), once));
      assert.equal(await store.posts.update(id, { title: 'b' }, { once: change }), true);
      assert.deepEqual(await store.openFileIndex?.(limits).commit([file], { once: commit }), []);
      await store.close();

      const next = await openOn(t, url);
      const index = made(next.openFileIndex)(limits);
      assert.deepEqual(await next.posts.create(text('a'), once), { id, isRepeated: true });
      assert.ok(isRepeated(await next.posts.update(id, { title: 'b' }, { once: change })));
      const other = { ...file, temporaryName: 'c' };
      assert.ok(isRepeated(await index.commit([other], { once: commit })));
      // Its place is a number of a sequence, which goes on in a database that is used again.
      const [listed] = await index.list();
      assert.deepEqual({ ...listed, place: 1 }, { ...file, place: 1, owner: null });
    });

    test('are kept with the removal of a post that has many comments', async (t) => {
      const { store } = await open(t);
      const [{ id }, once] = [made(await store.posts.create(text('a'))), newOnce()];
      // More than SQLite removes in one step.
      await Promise.all(times(1_501).map(async () => store.comments.add(id, 'c')));
      const all = await Promise.all(times(3).map(async () => store.posts.remove(id, { once })));
      const kinds = all.map((result) => typeof result);
      assert.deepEqual(kinds.toSorted(), ['boolean', 'object', 'object']);
    });

    test('are forgotten after 24 hours, and removed: the write is done and kept again', async (t) => {
      const { store, age, count } = await open(t);
      const [create, add, change] = times(3).map(newOnce) as [Once, Once, Once];
      const { id } = made(await store.posts.create(text('a'), create));
      const writes = [
        () => store.posts.create(text('a'), create),
        () => store.comments.add(id, 'a', { once: add }),
        () => store.posts.update(id, { title: 'b' }, { once: change }),
      ];
      for (const write of writes) await write();
      await age();
      assert.equal(await store.requests.find(create), undefined);
      for (const expected of [false, true]) {
        for (const [at, write] of writes.entries())
          assert.equal(isRepeated(await write()), expected, `write ${at}`);
      }
      assert.equal((await allOf(store.comments.ofPost(id))).length, 2);
      await age();
      await Promise.all(times(100).map(async () => store.posts.create(text('a'), newOnce())));
      await until('the old ones are gone', async () => (await count()) === 100);
    });

    // The same statement for both: a million keys at length alone.
    for (const isAnonymous of isLong ? [true, false] : [true]) {
      const max = isAnonymous ? 100_000 : 1_000_000;
      const whose = isAnonymous ? 'without a token' : 'of accounts';
      test(`${whose} beyond ${max} go, the oldest first, and no others`, async (t) => {
        const { store, query } = await open(t);
        const keyOf = (): Once => ({ ...newOnce(), isAnonymous });
        const [oldest, next, other] = [
          keyOf(),
          keyOf(),
          { ...newOnce(), isAnonymous: !isAnonymous },
        ];
        await store.posts.create(text('a'), other);
        await store.posts.create(text('a'), oldest);
        await query(
          `INSERT INTO requests (key, print, result, is_anonymous)
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${max - 1})
            SELECT n, '', '', ${Number(isAnonymous)} FROM n`,
          `INSERT INTO inkwell.requests (key, print, result, is_anonymous)
            SELECT n::text, '', '', ${isAnonymous} FROM generate_series(1, ${max - 1}) AS n`,
        );
        assert.ok(await store.requests.find(oldest));
        await store.posts.create(text('a'), next);
        await Promise.all(times(100).map(async () => store.posts.create(text('a'), keyOf())));
        const isGone = async (): Promise<boolean> => !(await store.requests.find(oldest));
        await until('the oldest is gone', isGone);
        for (const kept of [next, other]) assert.ok(await store.requests.find(kept));
      });
    }
  });
}
