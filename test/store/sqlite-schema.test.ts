/** The tables in a SQLite file: brought up to date, and what they keep by themselves. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Log } from '../../dist/log.js';
import { openAccounts } from '../../dist/store/open.js';
import { driverOptions } from '../support/driver-options.ts';
import { allOf } from '../support/lists.ts';
import { inSqlite, newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.ts';
import { openOn } from '../support/stores.ts';

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
    assert.deepEqual(
      published.map(({ publishedAt }) => publishedAt),
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
