/** How a SQLite file is written: for the disk, all or nothing, and beside other processes. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as nextIteration, setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import type { Log } from '../../dist/log.js';
import { openAccounts } from '../../dist/store/open.js';
import { createScheduler } from '../../dist/scheduler.js';
import { Changes } from '../../dist/store/changes.js';
import { openDatabase, prepareDatabase } from '../../dist/store/sqlite/database.js';
import { Transactions } from '../../dist/store/sqlite/transactions.js';
import { driverOptions } from '../support/driver-options.ts';
import { allOf, times } from '../support/lists.ts';
import { startNode } from '../support/program.ts';
import {
  inSqlite,
  newSqliteFile,
  openInSqlite,
  skipSqlite,
  toSqliteUrl,
} from '../support/sqlite.ts';
import { openOn } from '../support/stores.ts';

const only = { skip: skipSqlite };
const todo = { title: 'a', completed: false };

it('each commit waits for the disk', only, async (t) => {
  const database = await openDatabase(await newSqliteFile(t), true);
  prepareDatabase(database, () => undefined);
  const valueOf = (name: string): unknown => Object.values({ ...database.prepare(name).get() })[0];
  assert.equal(valueOf('PRAGMA synchronous'), 2);
  assert.equal(valueOf('PRAGMA journal_mode'), 'wal');
  assert.equal(valueOf('PRAGMA journal_size_limit'), 16_777_216);
  database.close();
});

it('a fault of the disk is told as a full one or as unavailable, and logged', only, async (t) => {
  const database = await openDatabase(await newSqliteFile(t), true);
  const logged: unknown[] = [];
  const log: Log = (_level, event) => void logged.push(event);
  const options = {
    changes: new Changes(),
    run: createScheduler().run,
    checkFile: () => undefined,
  };
  const transactions = new Transactions({ database, log, ...options });
  // As SQLite has them: full; a write, a size, and a read that failed.
  const codes = [13, 778, 4_874, 266].map((errcode) =>
    codeOf(transactions.toStoreError(Object.assign(new Error('fault'), { errcode }))),
  );
  assert.deepEqual(codes, ['storage_full', 'storage_full', 'storage_full', 'unavailable']);
  assert.equal(logged.length, 3);
  database.close();
});

it('a file that may not grow takes no writes, which is said, and is read', only, async (t) => {
  const STORE_URL = toSqliteUrl(await newSqliteFile(t));
  const node = await startNode(t, { STORE_URL });
  const limit = (bytes: string): void => {
    execFileSync('prlimit', ['--pid', `${node.pid}`, `--fsize=${bytes}:`]);
  };
  const create = async (): Promise<number> => {
    const headers = { 'Content-Type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify({ title: 'a' }) };
    return (await fetch(`${node.url}/api/todos`, init)).status;
  };
  limit('1');
  assert.equal(await create(), 507);
  assert.equal((await fetch(`${node.url}/posts`)).status, 200);
  const line = node.logged.find(({ event }) => event === 'the disk of the store failed');
  assert.match(String(line?.['reason']), /disk I\/O error/);
  limit('unlimited');
  assert.equal(await create(), 201);
});

/** A store on a file whose lock another process has. */
async function openLocked(t: TestContext) {
  const path = await newSqliteFile(t);
  const store = await openOn(t, toSqliteUrl(path));
  const other = openInSqlite(path);
  other.exec('BEGIN IMMEDIATE');
  const created = Promise.resolve(store.todos.create(todo)).then(() => 'stored', codeOf);
  return { store, other, created };
}

it('a write goes on 20 ms after another process has given its lock back', only, async (t) => {
  const { other, created } = await openLocked(t);
  assert.equal(await Promise.race([created, pause(100, 'waits')]), 'waits');
  other.close();
  // Of timers of one process the shorter one is first, however busy it is.
  assert.equal(await Promise.race([created, pause(500, 'waits')]), 'stored');
});

it('a request sees what another server acknowledged before', only, async (t) => {
  const path = await newSqliteFile(t);
  const store = await openOn(t, toSqliteUrl(path));
  const { id } = await store.posts.create({ title: 'a', content: 'x', authorId: null });
  await openOn(t, toSqliteUrl(path));
  store.changes();
  const isThere = (): boolean => store.posts.find(id) !== undefined;
  assert.ok(isThere());
  inSqlite(path, (database) => database.exec('DELETE FROM posts'));
  // Node runs microtasks between two sockets that one phase of the event loop reads.
  await Promise.resolve();
  assert.ok(!isThere());
});

it('a write that waits 2 s for the lock of another process is refused', only, async (t) => {
  const since = performance.now();
  const { other, created, store } = await openLocked(t);
  const late = pause(3_000, 'waits', { ref: false });
  assert.equal(await Promise.race([created, late]), 'overloaded');
  assert.ok(performance.now() - since >= 2_000);
  other.close();
  await store.todos.create(todo);
});

it('writes that take longer than a turn do not all hold the event loop', only, async (t) => {
  const store = await openOn(t, toSqliteUrl(await newSqliteFile(t)));
  let iteration = 0;
  const seen = new Set<number>();
  const changes = times(6).map(async () =>
    store.articles.change(1, (article) => {
      seen.add(iteration);
      // More than a turn has.
      for (const end = performance.now() + 6; performance.now() < end;);
      return article;
    }),
  );
  const over = { isOver: false };
  const counting = (async () => {
    for (; !over.isOver; iteration += 1) await nextIteration();
  })();
  await Promise.all(changes);
  over.isOver = true;
  await counting;
  assert.equal(seen.size, 6);
});

it('at most 10,000 writes wait for their batch', only, async (t) => {
  const store = await openOn(t, toSqliteUrl(await newSqliteFile(t)));
  const writes = times(10_001).map(async () =>
    Promise.resolve(store.todos.create({ title: 'a', completed: false })).then(
      () => 'stored',
      (error: unknown) => codeOf(error),
    ),
  );
  assert.deepEqual(await Promise.all(writes), [...times(10_000).map(() => 'stored'), 'overloaded']);
});

describe('the schema of a SQLite file', { skip: skipSqlite }, () => {
  it('is that of this version in a file of the first one, which gets no first records again', async (t) => {
    const path = await newSqliteFile(t);
    const first = await openOn(t, toSqliteUrl(path));
    await first.posts.remove(driverOptions().initial.posts[0]?.id ?? '');
    await first.posts.create({ title: 'a', content: 'x', authorId: null });
    await first.close();
    inSqlite(path, toFirstVersion);
    const logged: Parameters<Log>[] = [];
    const log: Log = (...line) => void logged.push(line);
    const options = { ...driverOptions({ log }), startSeconds: 5, mayCreate: false };
    const opened = await openAccounts(toSqliteUrl(path), options);
    assert.deepEqual(await opened.accounts.list(), []);
    const [[level, event, facts] = []] = logged;
    assert.deepEqual([logged.length, level, event], [1, 'info', 'schema migrated']);
    // No version with fewer steps can use it any more.
    assert.deepEqual([facts?.['from'], facts?.['usableFrom']], [1, facts?.['to']]);
    await opened.close();
    const second = await openOn(t, toSqliteUrl(path));
    // What is published has been so since it was created (R49).
    const [isDraft, ...published] = await allOf(second.posts.all);
    assert.equal(isDraft?.publishedAt, null);
    const found = published.map(({ publishedAt }) => publishedAt);
    assert.deepEqual(
      found,
      published.map(({ createdAt }) => createdAt),
    );
    assert.equal(published.length, 2);
  });

  it('keeps the dates of the 10,000 posts that were removed last', async (context) => {
    const path = await newSqliteFile(context);
    const store = await openOn(context, toSqliteUrl(path));
    const fill = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)
      INSERT INTO removed_posts (id, published_at) SELECT n, 'T' FROM n`;
    inSqlite(path, (database) => database.exec(fill));
    const [first, second] = driverOptions().initial.posts;
    for (const post of [first, second]) await store.posts.remove(post?.id ?? '');
    const [kept] = inSqlite(path, (database) => {
      const text = 'SELECT min(seq) AS first, count(*) AS count FROM removed_posts';
      return database.prepare(text).all();
    });
    assert.deepEqual({ ...kept }, { first: 3, count: 10_000 });
    const text = `SELECT published_at FROM removed_posts WHERE id = '${second?.id}'`;
    const rows = inSqlite(path, (database) => database.prepare(text).all());
    assert.equal(rows[0]?.['published_at'], second?.publishedAt);
  });
});

/** Without what later steps of the schema brought. */
function toFirstVersion(database: Parameters<Parameters<typeof inSqlite>[1]>[0]): void {
  const first = ['posts', 'comments', 'authors', 'todos', 'articles', 'counters'];
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  for (const table of tables.map(({ name }) => String(name))) {
    const isLater = !first.includes(table) && !table.startsWith('sqlite_');
    if (isLater) database.exec(`DROP TABLE ${table}`);
  }
  const indexes = ['posts_of_status', 'posts_of_author_status'];
  const ofDates = ['posts_published', 'posts_of_author_published'];
  for (const index of [...indexes, ...ofDates]) database.exec(`DROP INDEX ${index}`);
  database.exec('DROP TRIGGER keep_date; ALTER TABLE posts DROP COLUMN published_at');
  database.exec(
    `ALTER TABLE comments DROP COLUMN name; ALTER TABLE comments DROP COLUMN author_id;
    ALTER TABLE comments DROP COLUMN was_pending`,
  );
  database.exec('PRAGMA user_version = 1');
}
