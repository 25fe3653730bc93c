/** Two processes on one SQLite file, and writes that share a transaction. */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate as nextIteration, setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../../dist/errors.js';
import { times } from '../support/lists.ts';
import {
  inSqlite,
  newSqliteFile,
  openInSqlite,
  skipSqlite,
  toSqliteUrl,
} from '../support/sqlite.ts';
import { openOn } from '../support/stores.ts';

const only = { skip: skipSqlite };

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

it(
  'the time that a write waits for the lock of another process is not that of a transaction',
  only,
  async (t) => {
    const path = await newSqliteFile(t);
    const timed: string[] = [];
    const store = await openOn(t, toSqliteUrl(path), { timed: (kind) => void timed.push(kind) });
    const other = openInSqlite(path);
    other.exec('BEGIN IMMEDIATE');
    const created = store.posts.create({ title: 'a', content: 'x', authorId: null });
    for (let iteration = 0; iteration < 200; iteration += 1) await nextIteration();
    other.exec('COMMIT');
    other.close();
    await created;
    assert.deepEqual(timed, ['write']);
  },
);

it('a write that waits 2 s for the lock of another process is refused', only, async (t) => {
  const path = await newSqliteFile(t);
  const store = await openOn(t, toSqliteUrl(path));
  const todo = { title: 'a', completed: false };
  const other = openInSqlite(path);
  other.exec('BEGIN IMMEDIATE');
  const since = performance.now();
  const created = Promise.resolve(store.todos.create(todo)).then(() => 'stored', codeOf);
  // Of timers of one process the shorter one is first, however busy it is.
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

it('what comes beside a comment whose post does not exist is stored', only, async (t) => {
  const store = await openOn(t, toSqliteUrl(await newSqliteFile(t)));
  const draft = { title: 'a', content: 'x', authorId: null };
  const [first, none, last] = await Promise.all([
    store.posts.create(draft),
    store.comments.add('00000000-0000-7000-8000-000000000000', 'c'),
    store.posts.create(draft),
  ]);
  assert.equal(none, undefined);
  for (const { id } of [first, last]) assert.notEqual(store.posts.find(id), undefined, id);
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
