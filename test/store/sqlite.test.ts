import assert from 'node:assert/strict';
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Log } from '../../dist/log.js';
import { openAccounts, openStore } from '../../dist/store/open.js';
import { initialData } from '../../dist/store/seed.js';
import type { Store } from '../../dist/store/store.js';
import {
  inSqlite,
  newSqliteFile,
  openInSqlite,
  skipSqlite,
  toSqliteUrl,
} from '../support/sqlite.js';
import { withCode } from '../support/errors.js';
import { describeAccounts } from './accounts-suite.js';
import { describeDriver, driverOptions } from './driver-suite.js';
import { describeHistories } from './histories.js';
import { allOf } from '../support/lists.js';
import { toDraft } from '../support/article-texts.js';

function openFile(path: string, options = driverOptions()): Promise<Store> {
  return openStore(toSqliteUrl(path), options);
}

const driver = {
  name: 'in a SQLite file',
  skip: skipSqlite,
  open: async (context: TestContext, options: ReturnType<typeof driverOptions>): Promise<Store> => {
    const store = await openFile(await newSqliteFile(context), options);
    context.after(() => store.close());
    return store;
  },
} as const;

describeDriver(driver);
describeHistories(driver);
describeAccounts({
  name: driver.name,
  skip: skipSqlite,
  newUrl: async (context) => toSqliteUrl(await newSqliteFile(context)),
});

it('opens where Node has SQLite, else is refused with one line', async (context) => {
  const opening = openFile(await newSqliteFile(context));
  if (skipSqlite === false) return (await opening).close();
  await assert.rejects(opening, { message: 'STORE_URL: sqlite:// needs Node 22.13 or newer.' });
});

describe('a SQLite file', { skip: skipSqlite }, () => {
  it('keeps everything when it is closed and opened again', async (context) => {
    const path = await newSqliteFile(context);
    const first = await openFile(path);
    const post = await first.posts.create({ title: 'kept', content: 'x', authorId: null });
    const comment = await first.comments.add(post.id, 'kept too');
    await first.posts.remove(driverOptions().initial.posts[0]?.id ?? '');
    await first.articles.save(toDraft({ title: 'three' }));
    const posts = await allOf(first.posts.all);
    await first.close();

    const second = await openFile(path);
    context.after(() => second.close());
    assert.deepEqual(await allOf(second.posts.all), posts);
    assert.deepEqual(await allOf(second.comments.ofPost(post.id)), [comment]);
    assert.equal((await second.articles.save(toDraft({ title: 'four' }))).id, 4);
  });

  it('takes the initial data once, and the accounts of each start', async (context) => {
    const path = await newSqliteFile(context);
    await (await openFile(path)).close();
    const id = '019b8d5e-9c00-7000-8000-000000000409';
    const bob = { id, username: 'bob', email: 'b@example.org', roles: [], passwordHash: '' };
    const store = await openFile(path, driverOptions({ initial: initialData([bob], true) }));
    context.after(() => store.close());
    assert.equal((await allOf(store.posts.all)).length, 3);
    assert.equal(await store.accounts.find('ann'), undefined);
    assert.equal((await store.accounts.find('bob'))?.id, id);
    assert.equal((await store.authors.find(id))?.name, 'bob');
  });

  it('of the first version is brought up to date, and gets no first records again', async (t) => {
    const path = await newSqliteFile(t);
    const first = await openFile(path);
    await first.posts.remove(driverOptions().initial.posts[0]?.id ?? '');
    await first.close();
    inSqlite(path, toFirstVersion);
    const logged: unknown[] = [];
    const log: Log = (level, event, facts) => void logged.push([level, event, facts?.['from']]);
    const options = { ...driverOptions({ log }), startSeconds: 5, mayCreate: false };
    const opened = await openAccounts(toSqliteUrl(path), options);
    assert.deepEqual(await opened.accounts.list(), []);
    assert.deepEqual(logged, [['info', 'schema migrated', 1]]);
    await opened.close();
    const second = await openFile(path);
    t.after(() => second.close());
    assert.equal((await allOf(second.posts.all)).length, 2);
  });

  it('is for its owner only', async (context) => {
    const path = await newSqliteFile(context);
    await (await openFile(path)).close();
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  it('commits what waits when it is closed', async (context) => {
    const path = await newSqliteFile(context);
    const first = await openFile(path);
    const creating = first.posts.create({ title: 'last', content: 'x', authorId: null });
    await first.close();
    const { id } = await creating;
    const second = await openFile(path);
    context.after(() => second.close());
    assert.equal((await second.posts.find(id))?.title, 'last');
  });

  it('shares one transaction among the writes that arrive together', async (context) => {
    const path = await newSqliteFile(context);
    const store = await openFile(path);
    context.after(() => store.close());
    const other = await openFile(path);
    context.after(() => other.close());
    const before = other.versions()?.posts ?? 0;
    const titles = Array.from({ length: 50 }, (_, at) => `post ${at}`);
    const seen = titles.map(async (title) => {
      await store.posts.create({ title, content: 'x', authorId: null });
      return other.versions()?.posts;
    });
    // Another connection sees one commit.
    assert.deepEqual(new Set(await Promise.all(seen)), new Set([before + 1]));
  });

  it('moves its versions when another process writes', async (context) => {
    const path = await newSqliteFile(context);
    const [one, other] = [await openFile(path), await openFile(path)];
    context.after(() => Promise.all([one.close(), other.close()]));
    const before = { ...one.versions() };
    await other.posts.create({ title: 'from there', content: 'x', authorId: null });
    assert.notEqual(one.versions()?.posts, before.posts);
    assert.deepEqual(one.versions(), one.versions());
    assert.equal((await allOf(one.posts.all))[0]?.title, 'from there');
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

  it('has a short log again after a long reader', async (context) => {
    const path = await newSqliteFile(context);
    const store = await openFile(path);
    context.after(() => store.close());
    const content = 'x'.repeat(1_000_000);
    const addMany = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at += 1) {
        await store.posts.create({ title: 'a', content, authorId: null });
      }
    };
    const logSize = async (): Promise<number> => (await stat(`${path}-wal`)).size;
    const reader = openInSqlite(path);
    reader.exec('BEGIN');
    reader.prepare('SELECT * FROM posts').all();
    await addMany(40);
    assert.ok((await logSize()) > 40_000_000);
    reader.exec('COMMIT');
    reader.close();
    await addMany(4);
    assert.ok((await logSize()) <= 16 * 1024 * 1024);
  });

  it('lets writes wait for another process that writes, and other work go on', async (context) => {
    const path = await newSqliteFile(context);
    const store = await openFile(path);
    context.after(() => store.close());
    const draft = { title: 'late', content: 'x', authorId: null };
    const release = holdLock(path);
    let settled = false;
    const writing = Promise.resolve(store.posts.create(draft)).finally(() => (settled = true));
    for (let turns = 0; turns < 100; turns += 1) await new Promise(setImmediate);
    assert.equal(settled, false);
    release();
    await writing;
    const releaseLater = holdLock(path);
    await assert.rejects(async () => store.posts.create(draft), withCode('overloaded'));
    releaseLater();
    await store.posts.create(draft);
    assert.equal((await allOf(store.posts.all)).length, 5);
  });

  it('is closed although another process writes: what waits is refused', async (context) => {
    const path = await newSqliteFile(context);
    const store = await openFile(path);
    const release = holdLock(path);
    const draft = { title: 'never', content: 'x', authorId: null };
    const refused = assert.rejects(async () => store.posts.create(draft), withCode('overloaded'));
    await store.close();
    await refused;
    release();
  });

  it('removes a post with many comments as one act, while others read and write', async (t) => {
    const store = await driver.open(t, driverOptions());
    const draft = { title: 'A', content: 'text', authorId: null };
    const { id } = await store.posts.create(draft);
    await Promise.all(Array.from({ length: 1_200 }, async () => store.comments.add(id, 'text')));
    assert.equal(await store.posts.remove(id, { ...draft, title: 'B', status: 'DRAFT' }), false);
    assert.equal((await allOf(store.comments.ofPost(id))).length, 1_200);
    const removal = { isOver: false };
    const removing = Promise.resolve(store.posts.remove(id)).finally(() => (removal.isOver = true));
    const writing = store.posts.create(draft);
    const seen = new Set<string>();
    while (!removal.isOver) {
      seen.add(`${(await allOf(store.comments.ofPost(id))).length}`);
      await nextTurn();
    }
    assert.equal(await removing, true);
    seen.delete('0');
    assert.deepEqual([...seen], ['1200']);
    assert.ok(await store.posts.find((await writing).id));
    assert.equal(await store.posts.find(id), undefined);
  });

  it('is not written to by a start that changes nothing', async (t) => {
    const path = await newSqliteFile(t);
    await (await openFile(path)).close();
    const store = await openFile(path);
    t.after(() => store.close());
    assert.equal((await stat(`${path}-wal`)).size, 0);
  });

  it('that is replaced or deleted while it is open is not ready, and logged once', async (t) => {
    const path = await newSqliteFile(t);
    const logged: string[] = [];
    const log = (_level: string, event: string): void => void logged.push(event);
    const store = await openFile(path, { ...driverOptions(), log });
    t.after(() => store.close());
    await rename(path, `${path}.old`);
    for (let time = 0; time < 2; time += 1) assert.throws(() => store.ping(), /deleted/);
    await writeFile(path, '');
    assert.throws(() => store.ping(), /replaced/);
    assert.deepEqual(logged, ['the file of the store was deleted']);
  });

  it('is refused where its folder is missing', async (context) => {
    const path = join(await newSqliteFile(context), 'inkwell.db');
    await assert.rejects(openFile(path), { message: /^STORE_URL: .*\(ENOENT\)\.$/ });
  });
});

/** Without what later steps of the schema brought. */
function toFirstVersion(database: Parameters<Parameters<typeof inSqlite>[1]>[0]): void {
  const first = ['posts', 'comments', 'authors', 'todos', 'articles', 'counters'];
  for (const { name } of database
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
    .all()) {
    const table = String(name);
    if (!first.includes(table) && !table.startsWith('sqlite_'))
      database.exec(`DROP TABLE ${table}`);
  }
  database.exec('DROP INDEX posts_of_status; PRAGMA user_version = 1');
}

/** Keeps others from writing, as another process can, until the result is called. */
function holdLock(path: string): () => void {
  const database = openInSqlite(path);
  database.exec('BEGIN IMMEDIATE');
  return () => database.close();
}
