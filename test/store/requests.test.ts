/** How long, where and how many writes under keys are kept (R40), beyond the contract. */

import { AppError } from '../../dist/errors.js';
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { createByteBudget } from '../../dist/store/memory-table.js';
import { createMemoryRequests } from '../../dist/store/memory-requests.js';
import type { Once } from '../../dist/store/store.js';
import { allOf, times } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { made } from '../support/made.ts';
import { database } from '../support/shared-postgres.ts';
import { inSqlite } from '../support/sqlite.ts';
import { durableStores, inSqliteFile, openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { newOnce } from './contract-requests.ts';
import { text } from './contract-posts.ts';

const isReused = { code: 'idempotency_key_reused' };

test('in memory 100,000 keys are kept, for 24 hours, and the oldest goes', () => {
  let now = 0;
  const { run, find } = createMemoryRequests(undefined, () => now);
  const first = newOnce();
  run(first, () => ({ id: 'a' }));
  for (let count = 1; count < 100_000; count += 1) run({ ...first, key: `${count}` }, () => true);
  now = 86_399_999;
  assert.deepEqual(find(first), { id: 'a', isRepeated: true });
  run(newOnce(), () => true);
  assert.equal(find(first), undefined);
  assert.ok(find({ ...first, key: '99999' }));
  now = 86_400_000;
  assert.equal(find({ ...first, key: '99999' }), undefined);
  assert.deepEqual(
    run(first, () => ({ id: 'b' })),
    { id: 'b' },
  );
});

test('in memory keys of clients without a token have a tenth, and push out no others', () => {
  const { run, find } = createMemoryRequests(undefined, undefined, 100);
  const [account, first] = [newOnce(), { ...newOnce(), isAnonymous: true }];
  run(account, () => true);
  run(first, () => true);
  for (const other of times(9).map(newOnce)) run({ ...other, isAnonymous: true }, () => true);
  assert.ok(find(first));
  // What is repeated, or stores nothing, uses up nothing.
  run(first, () => true);
  run({ ...newOnce(), isAnonymous: true }, () => false);
  assert.ok(find(first));
  for (const other of times(200).map(newOnce)) run({ ...other, isAnonymous: true }, () => true);
  assert.deepEqual([find(first), typeof find(account)], [undefined, 'object']);
});

test('in memory a key takes 360 bytes, and makes room for itself when its write is done', () => {
  const take = createByteBudget(1_180);
  const { run, find } = createMemoryRequests(take, Date.now);
  const keyOf = (isAnonymous: boolean) => ({ ...newOnce(), isAnonymous });
  const [anonymous, account, other] = [keyOf(true), keyOf(false), keyOf(false)];
  for (const once of [account, anonymous, other]) run(once, () => true);
  take(100);
  const isFull = { code: 'storage_full' };
  const refused = (): void => take(1);
  // A write that is refused, or stores nothing, takes the place of nothing.
  assert.throws(() => run(keyOf(false), refused), isFull);
  assert.equal(
    run(keyOf(false), () => false),
    false,
  );
  assert.deepEqual(
    [account, anonymous, other].map((once) => typeof find(once)),
    ['object', 'object', 'object'],
  );
  // Without a token it is one without a token that goes; for an account, these first.
  run(keyOf(true), () => true);
  assert.deepEqual([find(anonymous), typeof find(account)], [undefined, 'object']);
  run(keyOf(false), () => true);
  assert.deepEqual(
    [account, other].map((once) => typeof find(once)),
    ['object', 'object'],
  );
  assert.throws(() => run(keyOf(true), () => true), isFull);
  run(keyOf(false), () => true);
  assert.equal(find(account), undefined);
  assert.throws(() => take(1), isFull);
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
      const { id } = made(await store.posts.create(text('a'), once));
      assert.equal(await store.posts.update(id, { title: 'b' }, { once: change }), true);
      const files = [{ storedName: 'a', temporaryName: 'b', size: 1 }];
      const limits = { filesMax: 10, bytesMax: 10 };
      assert.deepEqual(await store.openFileIndex?.(limits).commit(files, { once: commit }), []);
      await store.close();

      const next = await openOn(t, url);
      assert.deepEqual(await next.posts.create(text('a'), once), { id, isRepeated: true });
      const changed = await next.posts.update(id, { title: 'b' }, { once: change });
      assert.equal(typeof changed, 'object');
      const index = next.openFileIndex?.(limits);
      const other = [{ storedName: 'a', temporaryName: 'c', size: 1 }];
      assert.ok('isRepeated' in Object(await index?.commit(other, { once: commit })));
      await assert.rejects(
        async () => index?.commit(other, { once: { ...commit, fingerprint: 'b' } }),
        isReused,
      );
      // Its place is a number of a sequence, which goes on in a database that is used again.
      const [listed] = (await index?.list()) ?? [];
      assert.deepEqual({ ...listed, place: 1 }, { ...files[0], place: 1, owner: null });
    });

    test('of a commit that is refused, or a file that is not listed, are not kept', async (t) => {
      const { store, count } = await open(t);
      const index = store.openFileIndex?.({ filesMax: 1, bytesMax: 10 });
      const [once, removal] = times(2).map(newOnce) as [Once, Once];
      const file = { storedName: 'a', temporaryName: 'a', size: 11 };
      await assert.rejects(async () => index?.commit([file], { once }), { code: 'storage_full' });
      assert.equal(await index?.remove(file, removal), false);
      assert.equal(await count(), 0);
      assert.deepEqual(await index?.commit([{ ...file, size: 1 }], { once }), []);
      assert.equal(await index?.remove(file, removal), true);
      assert.equal(typeof (await index?.remove(file, removal)), 'object');
      assert.equal(await count(), 2);
    });

    test('are kept with the removal of a post that has many comments', async (t) => {
      const { store } = await open(t);
      const [first, once] = [made(await store.posts.create(text('a'))), newOnce()];
      const second = made(await store.posts.create(text('b')));
      await store.comments.add(second.id, 'c');
      // More than SQLite removes in one step.
      await Promise.all(times(1_501).map(async () => store.comments.add(first.id, 'c')));
      const remove = async () => store.posts.remove(first.id, { once });
      const all = await Promise.all([remove(), remove(), remove()]);
      const kinds = all.map((result) => typeof result);
      assert.deepEqual(kinds.toSorted(), ['boolean', 'object', 'object']);
      const reused = { once: { ...once, fingerprint: 'other' } };
      await assert.rejects(async () => store.posts.remove(second.id, reused), isReused);
      assert.equal((await allOf(store.comments.ofPost(second.id))).length, 1);
    });

    test('are forgotten after 24 hours: the write is done again, and kept again', async (t) => {
      const { store, age } = await open(t);
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
      for (const [at, write] of writes.entries())
        assert.ok(!('isRepeated' in Object(await write())), `write ${at}`);
      for (const [at, write] of writes.entries())
        assert.ok('isRepeated' in Object(await write()), `write ${at}`);
      assert.equal((await allOf(store.comments.ofPost(id))).length, 2);
    });

    test('go two hundred at a time, after a hundred writes', async (t) => {
      const { store, query, count } = await open(t);
      await query(
        `INSERT INTO requests (key, print, result, made)
          WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 450)
          SELECT 'old ' || n, 'p', '', 0 FROM n`,
        `INSERT INTO inkwell.requests (key, print, result, made)
          SELECT 'old ' || n, 'p', '', now() - interval '2 days' FROM generate_series(1, 450) AS n`,
      );
      await Promise.all(times(100).map(async () => store.posts.create(text('a'), newOnce())));
      await until('two hundred are gone', async () => (await count()) === 350);
    });

    test('of an upload that only adds are found before its names', async (t) => {
      const { store } = await open(t);
      const index = made(store.openFileIndex)({ filesMax: 10, bytesMax: 10 });
      const options = { once: newOnce(), check: onlyNew };
      const file = { storedName: 'a', temporaryName: 'a.upload', size: 1 };
      await index.commit([file], options);
      assert.ok('isRepeated' in Object(await index.commit([file], options)));
      await assert.rejects(async () => index.commit([file], { check: onlyNew }), {
        code: 'precondition_failed',
      });
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

function onlyNew(replaced: readonly unknown[]): void {
  if (replaced.length > 0) throw new AppError('precondition_failed', 'It is stored already.');
}
