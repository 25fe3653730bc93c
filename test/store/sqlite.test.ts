/** What a SQLite file has beyond the contract: how it is written, shared, refused and lost. */

import assert from 'node:assert/strict';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { openAccounts, openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { withCode } from '../support/errors.ts';
import { allOf, times } from '../support/lists.ts';
import {
  inSqlite,
  newSqliteFile,
  openInSqlite,
  skipSqlite,
  toSqliteUrl,
} from '../support/sqlite.ts';
import { driverOptions } from '../support/driver-options.ts';
import { refusal } from '../support/files.ts';
import { startServer } from '../support/server.ts';
import { openOn } from '../support/stores.ts';
import { within } from '../support/until.ts';

const draft = { title: 'a', content: 'x', authorId: null };

const openFile = (path: string): Promise<Store> => openStore(toSqliteUrl(path), driverOptions());

/** A new file, and a store on it that is closed with the test. */
async function openNew(context: TestContext): Promise<{ path: string; store: Store }> {
  const path = await newSqliteFile(context);
  return { path, store: await openOn(context, toSqliteUrl(path)) };
}

async function serve(context: TestContext) {
  const path = await newSqliteFile(context);
  return { path, server: await startServer(context, { env: { STORE_URL: toSqliteUrl(path) } }) };
}

it('opens where Node has SQLite, else is refused with one line', async (context) => {
  const opening = openFile(await newSqliteFile(context));
  if (skipSqlite === false) return (await opening).close();
  await assert.rejects(opening, { message: 'STORE_URL: sqlite:// needs Node 22.13 or newer.' });
});

describe('a SQLite file', { skip: skipSqlite }, () => {
  it('has texts as they are, without U+0000', async (context) => {
    const { path, store } = await openNew(context);
    for (const content of ['', 'zażółć 😀', '\u0001\t\r\n\uffff', 'a\0b'])
      await store.posts.create({ ...draft, content });
    await store.close();
    const rows = inSqlite(path, (database) =>
      database.prepare('SELECT content FROM posts ORDER BY id DESC LIMIT 4').all(),
    );
    const [zero, ...others] = rows.map(({ content }) => String(content));
    assert.deepEqual(others, ['\u0001\t\r\n\uffff', 'zażółć 😀', '']);
    assert.doesNotMatch(zero ?? '\0', /\0/);
  });

  it('is for its owner only', async (context) => {
    const { path } = await openNew(context);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  it('shares one transaction among the writes that arrive together', async (context) => {
    const { path, store } = await openNew(context);
    const other = await openOn(context, toSqliteUrl(path));
    const count = (): number => other.changes().sumOf([]);
    const before = count();
    // No turn ends: one transaction takes what fits into one.
    context.mock.method(performance, 'now', () => 0);
    const seen = times(50).map(async () => {
      await store.posts.create(draft);
      return count();
    });
    // Another connection sees one commit.
    assert.deepEqual(new Set(await Promise.all(seen)), new Set([before + 1]));
  });

  const refusals: Readonly<Record<string, (path: string) => unknown>> = {
    'the file was written by a newer version': (path) =>
      inSqlite(path, (database) => database.exec('PRAGMA user_version = 1000')),
    'the file belongs to another program': (path) =>
      inSqlite(path, (database) => database.exec('PRAGMA application_id = 0')),
    'the file is not an SQLite database': (path) =>
      writeFile(path, 'Some other text, '.repeat(100)),
    // As in a folder that is only to be read: root could write to that one.
    'the file, or its folder, cannot be written to': (path) => mkdir(`${path}-wal`),
  };
  for (const [reason, spoil] of Object.entries(refusals)) {
    it(`is refused, and left as it is: ${reason}`, async (context) => {
      const path = await newSqliteFile(context);
      await (await openFile(path)).close();
      await spoil(path);
      const before = await readFile(path);
      await assert.rejects(openFile(path), { message: new RegExp(`^STORE_URL: ${reason}`) });
      assert.deepEqual(await readFile(path), before);
    });
  }

  it('takes an empty file to which Litestream came first', async (context) => {
    const path = await newSqliteFile(context);
    inSqlite(path, (database) =>
      database.exec(`PRAGMA journal_mode = WAL;
        CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
        CREATE TABLE _litestream_lock (id INTEGER)`),
    );
    const store = await openOn(context, toSqliteUrl(path));
    assert.equal((await allOf(store.posts.all)).length, 3);
  });

  it('is closed although another process writes: what waits is refused', async (context) => {
    const { path, store } = await openNew(context);
    // As another process can.
    const other = openInSqlite(path);
    other.exec('BEGIN IMMEDIATE');
    const refused = assert.rejects(async () => store.posts.create(draft), withCode('overloaded'));
    await store.close();
    await refused;
    other.close();
  });

  it('undoes the writes that came with one that fails, and goes on', async (t) => {
    const { path, store } = await openNew(t);
    const refuse = `CREATE TRIGGER refuse BEFORE INSERT ON todos
      BEGIN SELECT RAISE(ABORT, 'refused'); END`;
    inSqlite(path, (database) => database.exec(refuse));
    const writes = [
      async () => store.posts.create(draft),
      async () => store.todos.create({ title: 'a', completed: false }),
    ];
    await Promise.all(writes.map((write) => assert.rejects(write)));
    await assert.doesNotReject(async () => store.posts.create(draft));
    assert.equal((await allOf(store.posts.all)).length, 4);
  });

  it('removes a post with many comments as one act, while others read and write', async (t) => {
    const { store } = await openNew(t);
    const { id } = await store.posts.create(draft);
    await Promise.all(times(6_000).map(async () => store.comments.add(id, 'text')));
    const expected = { ...draft, title: 'b', status: 'DRAFT' } as const;
    assert.equal(await store.posts.remove(id, { expected }), false);
    assert.equal((await allOf(store.comments.ofPost(id))).length, 6_000);
    const early = store.comments.add(id, 'before the removal');
    const removal = { isOver: false };
    const removing = Promise.resolve(store.posts.remove(id)).finally(() => (removal.isOver = true));
    let writing: ReturnType<Store['posts']['create']> | undefined;
    const seen: number[] = [];
    while (!removal.isOver) {
      assert.notEqual(store.posts.find(id), undefined);
      seen.push((await allOf(store.comments.ofPost(id))).length);
      if (seen.length === 3) writing = store.posts.create(draft);
      await nextIteration();
    }
    assert.equal(await removing, true);
    // After each 1,500 comments it lets others read.
    assert.ok(seen.filter((count) => count > 0).length > 4, `${seen.length} reads`);
    assert.ok(seen.every((count) => [0, 6_000, 6_001].includes(count)));
    assert.ok((await early) !== undefined);
    const written = await within(Promise.resolve(writing), 'the write behind the removal');
    assert.ok(await store.posts.find(written?.id ?? ''));
    assert.equal(await store.posts.find(id), undefined);
  });

  it('that was deleted or replaced is written to no more, which clients are told, and read', async (context) => {
    const { path, server } = await serve(context);
    const post = () => server.send('POST', '/posts', { title: 'a', content: 'b' });
    assert.equal((await post()).status, 201);
    await rm(path);
    for (const _ of times(3)) assert.deepEqual(await refusal(await post()), [503, 'unavailable']);
    assert.equal((await server.fetch('/readyz')).status, 503);
    assert.equal((await server.fetch('/posts')).status, 200);
    await writeFile(path, '');
    assert.equal((await post()).status, 503);
    const event = 'the file of the store was deleted';
    assert.equal(server.logged.filter((record) => record.event === event).length, 1);
  });

  // To SQLite a table without free numbers is full as a disk is.
  const fill = `UPDATE sqlite_sequence SET seq = ${2n ** 63n - 1n} WHERE name = 'posts'`;

  it('on a full disk is written to no more, which clients are told, and read', async (context) => {
    const { path, server } = await serve(context);
    inSqlite(path, (database) => database.exec(fill));
    const refused = await server.send('POST', '/posts', { title: 'a', content: 'b' });
    assert.deepEqual(await refusal(refused), [507, 'storage_full']);
    assert.equal(((await (await server.fetch('/posts')).json()) as unknown[]).length, 3);
    assert.equal((await server.send('POST', '/api/todos', { title: 'a' })).status, 201);
  });

  it('that cannot be filled on a full disk is refused', async (context) => {
    const path = await newSqliteFile(context);
    const options = { ...driverOptions(), startSeconds: 5, mayCreate: true };
    await (await openAccounts(toSqliteUrl(path), options)).close();
    inSqlite(path, (database) =>
      database.exec(`INSERT INTO sqlite_sequence (name) VALUES ('posts'); ${fill}`),
    );
    const message = 'STORE_URL: the disk of the file is full (13).';
    await assert.rejects(openFile(path), { message });
  });
});
