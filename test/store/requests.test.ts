/** How long, where and how many writes under keys are kept (R40), beyond the contract. */

import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { createByteBudget } from '../../dist/store/memory-table.js';
import { createMemoryRequests } from '../../dist/store/memory-requests.js';
import type { Once } from '../../dist/store/store.js';
import { allOf, times } from '../support/lists.ts';
import { made } from '../support/made.ts';
import { database } from '../support/shared-postgres.ts';
import { inSqlite } from '../support/sqlite.ts';
import { durableStores, inSqliteFile, openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { newOnce } from './contract-requests.ts';
import { text } from './contract-posts.ts';

const isReused = { code: 'idempotency_key_reused' };

test('in memory a key is kept for 24 hours, and the oldest of 3 goes', () => {
  let now = 0;
  const { run, find } = createMemoryRequests(undefined, () => now, 3);
  const onces = times(4).map(newOnce);
  const [first, second, third, fourth] = onces as [Once, Once, Once, Once];
  run(first, () => ({ id: 'a' }));
  now = 86_399_999;
  assert.deepEqual(find(first), { id: 'a', isRepeated: true });
  now = 86_400_000;
  assert.equal(find(first), undefined);
  assert.deepEqual(
    run(first, () => ({ id: 'b' })),
    { id: 'b' },
  );
  for (const [at, once] of [second, third, fourth].entries()) run(once, () => ({ id: at }));
  assert.deepEqual(
    onces.map((once) => find(once)?.id),
    [undefined, '0', '1', '2'],
  );
});

test('in memory 100,000 keys are kept, and each removes two that are old', () => {
  const { run, find } = createMemoryRequests();
  const first = newOnce();
  run(first, () => true);
  for (let count = 1; count < 100_000; count += 1) run({ ...first, key: `${count}` }, () => true);
  assert.ok(find(first));
  run(newOnce(), () => true);
  assert.equal(find(first), undefined);

  let [now, bytes] = [0, 0];
  const old = createMemoryRequests(
    (more) => (bytes += more),
    () => now,
  );
  for (const once of times(10).map(newOnce)) old.run(once, () => true);
  now = 86_400_000;
  old.run(newOnce(), () => true);
  assert.equal(bytes, (10 - 2 + 1) * 360);
});

test('in memory a key takes 360 bytes, and as many are kept as fit', () => {
  const take = createByteBudget(1_180);
  const { run, find } = createMemoryRequests(take, Date.now);
  const onces = times(4).map(newOnce);
  for (const once of onces) run(once, () => true);
  assert.deepEqual(
    onces.map((once) => find(once) === undefined),
    [true, false, false, false],
  );
  assert.throws(() => take(101), { code: 'storage_full' });
  take(100);
  for (const failing of times(10))
    assert.equal(
      run(newOnce(), () => false),
      false,
      `${failing}`,
    );
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
      assert.deepEqual({ ...listed, place: 1 }, { ...files[0], place: 1 });
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
      const [first, second] = [
        await store.posts.create(text('a')),
        await store.posts.create(text('b')),
      ];
      for (const { id } of [first, second]) {
        await Promise.all(times(501).map(async () => store.comments.add(id, 'c')));
      }
      const once = newOnce();
      const all = await Promise.all(
        times(3).map(async () => store.posts.remove(first.id, { once })),
      );
      assert.deepEqual(all.map((result) => typeof result).toSorted(), [
        'boolean',
        'object',
        'object',
      ]);
      const other = { once: { ...once, fingerprint: 'other' } };
      await assert.rejects(async () => store.posts.remove(second.id, other), isReused);
      assert.equal((await allOf(store.comments.ofPost(second.id))).length, 501);
    });

    test('are forgotten after 24 hours: the write is done again, and kept again', async (t) => {
      const { store, age } = await open(t);
      const [create, add, change] = times(3).map(newOnce) as [Once, Once, Once];
      const { id } = made(await store.posts.create(text('a'), create));
      const writes = [
        () => store.posts.create(text('a'), create),
        () => store.comments.add(id, 'a', add),
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

    test('go some at a time when they are old, without a request for them', async (t) => {
      const { store, age, count } = await open(t);
      const write = (): Promise<unknown> =>
        Promise.resolve(store.posts.create(text('a'), newOnce()));
      for (const at of times(10)) await write().then(() => at);
      await age();
      for (const at of times(100)) await write().then(() => at);
      await until('the old ones are gone', async () => (await count()) === 100);
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
      const options = { once: newOnce(), onlyNew: true };
      const file = { storedName: 'a', temporaryName: 'a.upload', size: 1 };
      await index.commit([file], options);
      assert.ok('isRepeated' in Object(await index.commit([file], options)));
      await assert.rejects(async () => index.commit([file], { onlyNew: true }), {
        code: 'precondition_failed',
      });
    });

    test('beyond 1,000,000 go, the oldest first', async (t) => {
      const { store, query } = await open(t);
      const [oldest, next] = times(2).map(newOnce) as [Once, Once];
      await store.posts.create(text('a'), oldest);
      await query(
        'UPDATE requests SET seq = seq - 1000000',
        `SELECT setval(pg_get_serial_sequence('inkwell.requests', 'seq'),
          (SELECT max(seq) FROM inkwell.requests) + 999999)`,
      );
      assert.ok(await store.requests.find(oldest));
      if (isSqlite) {
        await query(`INSERT INTO requests (seq, key, print, result) VALUES (0, 'k', 'p', '')`, '');
      }
      await store.posts.create(text('a'), next);
      await Promise.all(times(100).map(async () => store.posts.create(text('a'), newOnce())));
      const isGone = async (): Promise<boolean> => !(await store.requests.find(oldest));
      await until('the oldest is gone', isGone);
      assert.ok(await store.requests.find(next));
    });
  });
}
