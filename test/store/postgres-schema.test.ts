/** The tables in PostgreSQL: made, brought up to date, refused, and checked before that. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseLocalDateTime } from '../../dist/domain/local-date-time.js';
import type { Log } from '../../dist/log.js';
import { openAccounts, openStore } from '../../dist/store/open.js';
import { changing } from '../support/article-texts.ts';
import { fails, runCommandHere } from '../support/command.ts';
import { driverOptions } from '../support/driver-options.ts';
import { allOf } from '../support/lists.ts';
import { migrateTo } from '../support/migrate-to.ts';
import { skipPostgres as skip } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { openOn } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { createDirectory } from '../support/uploads.ts';
import { watching } from '../support/watching.ts';
import { newOnce } from './contract-requests.ts';

test('a database of the first version is brought up to date', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  await migrateTo(url, 1);
  await database.query(url, 'UPDATE inkwell.schema_state SET is_filled = true');
  const logged: unknown[] = [];
  const log: Log = (level, event, { from, usableFrom } = {}) =>
    void logged.push([level, event, from, usableFrom]);
  const options = { ...driverOptions({ log }), startSeconds: 5, mayCreate: true };
  const opened = await openAccounts(url, options);
  assert.deepEqual(await opened.accounts.list(), []);
  assert.deepEqual(logged, [['info', 'schema migrated', 1, 11]]);
  await opened.close();
  const second = await openOn(t, url);
  assert.equal((await allOf(second.posts.all)).length, 0);
});

test('nodes of the build with 14 steps run beside those of this one', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  await migrateTo(url, 14);
  const post = randomUUID();
  const article = `INSERT INTO inkwell.articles (id, document) VALUES (7, '{"title":"a","id":7}')`;
  /** As that build stores comments, with and without keys. */
  const add = (content: string, key: string = randomUUID()): string => `WITH post AS MATERIALIZED (
      SELECT id FROM inkwell.posts WHERE id = '${post}' FOR KEY SHARE
    ), noted AS (
      INSERT INTO inkwell.requests (key, print, result) VALUES ('${key}', 'print', '')
      ON CONFLICT DO NOTHING RETURNING key
    )
    INSERT INTO inkwell.comments (id, post_id, content, created_at, timeline)
    SELECT '${randomUUID()}'::uuid, id, '${content}', '', (SELECT inkwell.timeline())
    FROM post, noted RETURNING seq, timeline, pg_current_xact_id()::text AS xid`;
  await database.query(
    url,
    `INSERT INTO inkwell.posts (id, title, content, status, created_at)
      VALUES ('${post}', 'a', 'b', 'DRAFT', '2026-01-01T00:00:00'); ${article};
     UPDATE inkwell.schema_state SET is_filled = true`,
  );
  const [before] = await database.query(url, add('before'));

  const store = await openOn(t, url);
  const heard: string[] = [];
  store.comments.watch(({ comment: { content } }) => heard.push(content));
  await watching([store]);
  const once = newOnce();
  await store.comments.add(post, 'new', { once });
  assert.deepEqual(await database.query(url, add('repeated', once.key)), []);
  const ofOld = randomUUID();
  const [after] = await database.query(url, add('old', ofOld));
  assert.equal(Number(after?.['seq']), Number(before?.['seq']) + 2);
  const repeated = await store.comments.add(post, 'old', {
    once: { key: ofOld, fingerprint: 'print' },
  });
  assert.ok('isRepeated' in Object(repeated));
  await until('both', () => heard.length === 2);
  assert.deepEqual(heard, ['new', 'old']);
  const texts = (await allOf(store.comments.ofPost(post))).map(({ content }) => content);
  assert.deepEqual(texts, ['before', 'new', 'old']);
  // That build changes an article only if it has the version that it read.
  const version = 'SELECT version FROM inkwell.articles WHERE id = 7';
  const [read] = await database.query(url, version);
  await store.articles.change(7, changing({ title: 'b' }));
  assert.notDeepEqual(await database.query(url, version), [read]);
});

test('nodes without dates of publication run beside those of this build', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  await migrateTo(url, 17);
  const [published, draft] = [randomUUID(), randomUUID()];
  const insert = 'INSERT INTO inkwell.posts (id, title, content, status, created_at)';
  await database.query(
    url,
    `${insert} VALUES ('${published}', 'a', 'b', 'PUBLISHED', '2026-01-01T00:00:00'),
      ('${draft}', 'a', 'b', 'DRAFT', '2026-01-01T00:00:00');
    UPDATE inkwell.schema_state SET is_filled = true`,
  );
  const { posts } = await openOn(t, url);
  assert.equal((await posts.find(published))?.publishedAt, '2026-01-01T00:00:00');
  assert.equal((await posts.find(draft))?.publishedAt, null);
  // As that build publishes a post: its date is that of the clock of the database.
  const seconds = `SELECT extract(epoch FROM (now() AT TIME ZONE 'UTC' - published_at::timestamp))
    BETWEEN 0 AND 60 AS is_now FROM inkwell.posts WHERE id = '${draft}'`;
  await database.query(url, `UPDATE inkwell.posts SET status = 'PUBLISHED' WHERE id = '${draft}'`);
  assert.deepEqual(await database.query(url, seconds), [{ is_now: true }]);
  const date = (await posts.find(draft))?.publishedAt ?? '';
  assert.equal(parseLocalDateTime(date), date);
  await posts.update(draft, { status: 'DRAFT' });
  await posts.update(draft, { status: 'PUBLISHED' });
  assert.equal((await posts.find(draft))?.publishedAt, date);
});

test('the dates of the 10,000 posts that were removed last are kept', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  const { posts } = await openOn(t, url);
  await database.query(
    url,
    `INSERT INTO inkwell.removed_posts (id, published_at)
      SELECT gen_random_uuid(), 'T' FROM generate_series(1, 10000)`,
  );
  const [first, second] = driverOptions().initial.posts;
  for (const post of [first, second]) await posts.remove(post?.id ?? '');
  const kept = 'SELECT min(seq)::int AS first, count(*)::int FROM inkwell.removed_posts';
  assert.deepEqual(await database.query(url, kept), [{ first: 3, count: 10_000 }]);
  const last = `SELECT published_at FROM inkwell.removed_posts WHERE id = '${second?.id}'`;
  assert.deepEqual(await database.query(url, last), [{ published_at: second?.publishedAt }]);
});

test('texts that are compared have the order of bytes', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  await (await openOn(t, url)).close();
  // The collation of an index on texts: all indexes of texts follow no locale.
  const wrong = `SELECT indexrelid::regclass FROM pg_index, unnest(indcollation) AS used
    WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'inkwell'::regnamespace)
    AND used NOT IN (0, '"C"'::regcollation)`;
  assert.deepEqual(await database.query(url, wrong), []);
});

test('a database that a newer version made is refused if that says so', { skip }, async (t) => {
  const url = await database.emptyDatabase();
  await (await openOn(t, url)).close();
  await database.query(url, 'UPDATE inkwell.schema_state SET version = 1000');
  // Its steps only added to the tables: the writes since then are kept by going back.
  await (await openOn(t, url)).close();
  await database.query(url, 'UPDATE inkwell.schema_state SET usable_from = 1000');
  await assert.rejects(openStore(url, driverOptions()), {
    message: 'STORE_URL: the database was written by a newer version of this program.',
  });
});

test('--check refuses what a start would, and changes nothing', { skip }, async (t) => {
  const url = await database.createDatabase();
  const folder = await createDirectory(t);
  const of = (role: string): string => url.replace('inkwell@', `${role}@`);
  const check = (STORE_URL: string, UPLOAD_DIR = '') =>
    runCommandHere(['--check'], { env: { PORT: '0', STORE_URL, UPLOAD_DIR } });
  await database.query(url, 'CREATE ROLE plain LOGIN');
  assert.equal((await check(url, folder)).code, 0);
  const made = "SELECT FROM pg_namespace WHERE nspname = 'inkwell'";
  assert.deepEqual(await database.query(url, made), []);

  const service = await startServer(t, { env: { STORE_URL: url, UPLOAD_DIR: folder } });
  await service.stop();
  assert.equal((await check(url, folder)).code, 0);
  await fails(check(of('plain')), /STORE_URL: .* permission denied for schema inkwell/);
  await database.query(
    url,
    `GRANT USAGE ON SCHEMA inkwell TO plain;
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA inkwell TO plain`,
  );
  await fails(check(of('plain')), /STORE_URL: the role lacks SELECT on inkwell\.\w+_seq\.$/m);
  const functions = 'ON ALL FUNCTIONS IN SCHEMA inkwell';
  await database.query(
    url,
    `GRANT SELECT ON ALL SEQUENCES IN SCHEMA inkwell TO plain;
     REVOKE EXECUTE ${functions} FROM PUBLIC`,
  );
  await fails(check(of('plain')), /STORE_URL: the role lacks EXECUTE on inkwell\.\w+\(.*\)\.$/m);
  await database.query(url, `GRANT EXECUTE ${functions} TO plain`);
  assert.equal((await check(of('plain'), folder)).code, 0);

  await writeFile(join(folder, 'inkwell-files/id'), 'another');
  await fails(check(url, folder), /UPLOAD_DIR: .* is not the folder of this database/);
  await rm(join(folder, 'inkwell-files'), { recursive: true });
  await fails(check(url, folder), /UPLOAD_DIR: .* is not the folder of this database/);
  await database.query(url, 'DELETE FROM inkwell.upload_folder');
  assert.equal((await check(url, folder)).code, 0);
  await mkdir(join(folder, 'inkwell-files'));
  await writeFile(join(folder, 'inkwell-files/1.upload'), 'x');
  await fails(check(url, folder), /UPLOAD_DIR: the database of STORE_URL lists no file/);

  await database.query(url, 'DROP OWNED BY plain CASCADE; DROP ROLE plain');
});
