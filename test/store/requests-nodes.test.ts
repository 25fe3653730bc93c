/** Writes under keys on several nodes of one PostgreSQL (R40), and those whose first is under way. */

import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { Once, Store } from '../../dist/store/store.js';
import { toDraft } from '../support/article-texts.ts';
import { allOf, times } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { made } from '../support/made.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';
import { openSession } from '../support/session.ts';
import { openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { text } from './contract-posts.ts';
import { newOnce } from './contract-requests.ts';

const byKey = (one: Once, other: Once): number => (one.key < other.key ? -1 : 1);

describe('a write under a key on PostgreSQL', { skip }, () => {
  async function open(t: TestContext) {
    const url = await database.clearedDatabase();
    const store = await openOn(t, url, { timeoutSeconds: 2 });
    const { id } = made(await store.posts.create(text('a')));
    const session = openSession(t, url);
    /** Another node, whose transaction has written under this key and is open. */
    const hold = async ({ key, fingerprint }: Once): Promise<void> => {
      await session`BEGIN`;
      await session`INSERT INTO inkwell.requests (key, print, result)
        VALUES (${key}, ${fingerprint}, 'theirs')`;
    };
    const untilWaiting = (): Promise<void> =>
      until('a statement waits for the key', async () => {
        const waiting = await database.query(
          url,
          `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
            AND wait_event_type = 'Lock' AND query LIKE '%inkwell.requests%'`,
        );
        return waiting.length > 0;
      });
    return { url, store, id, session, hold, untilWaiting };
  }

  test('is done once, whichever nodes get it, and many in any order never wait in a circle', async (t) => {
    const { url, store, id } = await open(t);
    const nodes = [store, await openOn(t, url)];
    const onces = times(60).map(newOnce);
    const shuffled = [onces, onces.toReversed(), onces.toSorted(byKey), onces.toSorted(byKey)];
    const results = await Promise.all(
      shuffled.flatMap((order, at) =>
        order.map(async (once) => {
          const node = nodes[at % 2] as Store;
          const isPost = onces.indexOf(once) % 2 === 0;
          return isPost ? node.posts.create(text('b'), once) : node.comments.add(id, 'b', { once });
        }),
      ),
    );
    assert.equal(results.filter((result) => !('isRepeated' in Object(result))).length, 60);
    assert.equal((await allOf(store.comments.ofPost(id))).length, 30);
  });

  test('does not read all keys, if there were few when its statements were planned', async (t) => {
    const url = await database.createDatabase();
    const store = await openOn(t, url, { connectionsMax: 1 });
    const fill = (from: number, to: number): Promise<unknown> =>
      database.query(
        url,
        `INSERT INTO inkwell.requests (key, print, result)
        SELECT n::text, '', gen_random_uuid()::text FROM generate_series(${from}, ${to}) AS n`,
      );
    const write = (): Promise<unknown> =>
      Promise.all(times(100).map(async () => store.posts.create(text('a'), newOnce())));
    await fill(1, 1_000);
    await write();
    await fill(1_001, 20_000);
    await write();
    await store.close();
    // A connection adds to the statistics when it ends.
    const others = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`;
    await until('the end', async () => (await database.query(url, others)).length === 0);
    const [read] = await database.query(
      url,
      `SELECT seq_tup_read::int AS rows FROM pg_stat_user_tables WHERE relname = 'requests'`,
    );
    assert.ok(Number(read?.['rows']) < 10_000, `${String(read?.['rows'])} rows were read`);
  });

  test('of a comment and of its post at once never waits in a circle', async (t) => {
    const { url, store } = await open(t);
    const other = await openOn(t, url);
    for (const round of times(isLong ? 5 : 2)) {
      const { id } = made(await store.posts.create(text('a')));
      const all = await Promise.all(times(500).map(async () => store.comments.add(id, 'c')));
      const once = newOnce();
      const comment = (all.at(-1) as { id: string }).id;
      const ends = await Promise.allSettled([
        store.posts.remove(id, { once }),
        other.comments.remove([comment], { once }),
      ]);
      const seen = ends.map((end) => end.status);
      assert.deepEqual(seen, ['fulfilled', 'fulfilled'], `round ${round}`);
    }
    const [found] = await database.query(
      url,
      'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
    );
    assert.equal(found?.['deadlocks'], 0);
  });

  const writes: Readonly<Record<string, (store: Store, id: string, once: Once) => unknown>> = {
    'posts.create': ({ posts }, _, once) => posts.create(text('b'), once),
    'comments.add': ({ comments }, id, once) => comments.add(id, 'b', { once }),
    'posts.update': ({ posts }, id, once) => posts.update(id, { title: 'b' }, { once }),
    'articles.save': ({ articles }, _, once) => articles.save(toDraft({ title: 'b' }), once),
  };
  for (const [name, write] of Object.entries(writes)) {
    test(`waits for the first: ${name}`, async (t) => {
      const { store, id, session, hold, untilWaiting } = await open(t);
      const [kept, undone, stuck] = times(3).map(newOnce) as [Once, Once, Once];
      const before = await session`SELECT last_value FROM inkwell.comments_seq_seq`;

      await hold(kept);
      const repeated = Promise.resolve(write(store, id, kept));
      await untilWaiting();
      // No number is held, which would stall the events of all nodes.
      assert.deepEqual(await session`SELECT last_value FROM inkwell.comments_seq_seq`, before);
      await session`COMMIT`;
      assert.deepEqual(await repeated, { id: 'theirs', isRepeated: true });

      await hold(undone);
      const first = Promise.resolve(write(store, id, undone));
      await untilWaiting();
      await session`ROLLBACK`;
      assert.ok(!('isRepeated' in Object(await first)));

      await hold(stuck);
      const error = { code: 'request_in_progress', facts: { retryAfterSeconds: 1 } };
      const since = performance.now();
      await assert.rejects(async () => write(store, id, stuck), error);
      // As long as a statement may take, which is longer than it waits for a lock.
      assert.ok(performance.now() - since > 1_900);
      await session`ROLLBACK`;
      assert.ok(!('isRepeated' in Object(await write(store, id, stuck))));
    });
  }
});
