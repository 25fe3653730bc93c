/** How a SQLite file is written: for the disk, all or nothing, and beside other processes. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { it, type TestContext } from 'node:test';
import { setImmediate as nextIteration, setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import { openDatabase, prepareDatabase } from '../../dist/store/sqlite/database.js';
import { times } from '../support/lists.ts';
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

it(
  'a request sees what another server acknowledged before, in the same iteration too',
  only,
  async (t) => {
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
  },
);

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
