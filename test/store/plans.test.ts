/**
 * What statements read, on tables in which one post has all comments and one author half of the
 * posts. Statistics of such tables say that every post has many: that misleads plans for another.
 */

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { changing, toDraft } from '../support/article-texts.ts';
import { isLong } from '../support/long.ts';
import { made } from '../support/made.ts';
import { skipPostgres } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';
import { inSqlite, newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.ts';
import { driverOptions } from '../support/driver-options.ts';
import { until } from '../support/until.ts';

/** In each table. */
const rowsMax = 5_000;

const toId = (number: number): string => `01900000-0000-7000-8000-${100_000_000_000 + number}`;
const id = "('01900000-0000-7000-8000-' || (100000000000 + n))::uuid";
const numbers = `WITH RECURSIVE numbers (n) AS (
  SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${rowsMax})`;
/** The last post and the last author have nothing. */
const [post, author] = [toId(rowsMax), toId(rowsMax)];

/** For both databases, where the first does without the type. */
const filling = `
  ${numbers} INSERT INTO authors SELECT ${id}, 'A', 'a@example.org', 'T' FROM numbers;
  ${numbers} INSERT INTO posts
      (id, title, content, status, created_at, author_id, published_at)
    SELECT ${id}, 'A', 'text', CASE WHEN n % 3 = 0 THEN 'PUBLISHED' ELSE 'DRAFT' END, 'T',
      CASE WHEN n % 2 = 0 THEN '${toId(1)}'::uuid END,
      CASE WHEN n % 3 = 0 THEN 'T' || n * 7 % ${rowsMax} END
    FROM numbers;
  ${numbers} INSERT INTO comments (id, post_id, content, created_at)
    SELECT ${id}, '${toId(1)}'::uuid, 'text', 'T' FROM numbers;
  ${numbers} INSERT INTO todos (id, title, completed) SELECT ${id}, 'A', false FROM numbers;
  ${numbers} INSERT INTO articles (id, document) SELECT n + 100, '{"id":' || (n + 100) || '}' FROM numbers;
  ${numbers} INSERT INTO accounts SELECT 'u' || n, ${id}, 'a', '[]', 'x' FROM numbers;
  ${numbers} INSERT INTO files (stored_name, disk_name, size, change)
    SELECT 'f' || n, 'd' || n, 1, 1 FROM numbers;`;

/** Each is answered with five records at most. */
async function askAll({ posts, comments, authors, todos, ...store }: Store): Promise<void> {
  const limit = 5;
  for (const list of [
    posts.all,
    posts.ofAuthor(author),
    posts.ofAuthor(toId(1)),
    posts.ofAuthor(toId(1), 'DRAFT'),
    posts.ofAuthor(toId(1), 'PUBLISHED'),
    posts.ofAuthor(author, 'DRAFT'),
    posts.ofStatus('DRAFT'),
    posts.ofStatus('PUBLISHED'),
    comments.ofPost(post),
    comments.ofPost(toId(1)),
    todos.all,
    store.articles.all,
  ]) {
    await (await list.read({ limit })).next?.();
  }
  await posts.all.read({ after: toId(10), limit });
  await posts.ofAuthor(toId(1)).read({ after: toId(10), limit });
  await posts.ofAuthor(toId(1), 'DRAFT').read({ after: toId(10), limit });
  for (const after of [toId(9), toId(10), toId(rowsMax + 1)]) {
    await posts.ofStatus('PUBLISHED').read({ after, limit });
    await posts.ofAuthor(toId(1), 'PUBLISHED').read({ after, limit });
  }
  await posts.ofStatus('DRAFT').read({ after: toId(10), limit });
  await comments.ofPost(toId(1)).read({ after: toId(rowsMax - 10), limit });
  await todos.all.read({ after: toId(10), limit });
  const found = [await posts.find(post), await comments.find(post), await authors.find(author)];
  assert.ok(found.every((record) => record !== undefined));
  await todos.find(post);
  // At the same time: joined into one statement, where the store does that.
  await Promise.all([author, toId(2)].map(async (each) => authors.find(each)));
  await Promise.all([post, toId(2)].map(async (each) => posts.find(each)));
  await Promise.all([post, toId(2)].map(async (each) => comments.ofPost(each).read()));
  await Promise.all([author, toId(2)].map(async (each) => posts.ofAuthor(each).read()));
  const some = [author, toId(1)].map((each) => posts.ofAuthor(each, 'PUBLISHED'));
  await Promise.all(some.map(async (list) => list.read({ limit })));
  await Promise.all([toId(10), toId(20)].map(async (after) => posts.all.read({ after, limit })));
  await store.accounts.find('u1');
  const index = store.openFileIndex?.({ filesMax: 1e6, bytesMax: 1e9 });
  assert.equal((await index?.list('f1'))?.length, 1);
  assert.equal((await index?.page(5, 2))?.length, 2);
  await change(store, { posts, comments, todos });
}

async function change(
  { articles }: Pick<Store, 'articles'>,
  { posts, comments, todos }: Pick<Store, 'posts' | 'comments' | 'todos'>,
): Promise<void> {
  const created = await posts.create({ title: 'A', content: 'text', authorId: null });
  let stop: (() => void) | undefined;
  const told = new Promise<unknown>((resolve) => (stop = comments.watch?.(resolve)));
  await comments.add(created.id, 'text');
  if (stop !== undefined) await told;
  stop?.();
  await posts.update(created.id, { title: 'B', content: 'text' }, { expected: made(created) });
  await posts.remove(created.id);
  await todos.create({ title: 'A', completed: false });
  await articles.find(200);
  await articles.save(toDraft({ title: 'A' }));
  await articles.change(200, changing({ content: 'text' }));
}

describe('statements on SQLite', { skip: skipSqlite }, () => {
  /** What is no table, has one row, or is an index of files, which has a bound. */
  const scans =
    /^SCAN (json_each|counted|given|near|CONSTANT ROW|\(subquery|sqlite_master|pragma_|upload_folder|files)/;
  /** A range that only one column of a key limits: it is for a list of all records alone. */
  const range = /\(\w+[<>]\?\)$/;

  for (const statistics of ['', 'ANALYZE']) {
    it(`search what is answered${statistics && ', with statistics too'}`, async (context) => {
      const path = await newSqliteFile(context);
      const options = driverOptions();
      await (await openStore(toSqliteUrl(path), options)).close();
      const { mock } = inSqlite(path, (file) => {
        file.exec(`BEGIN; ${filling.replaceAll('::uuid', '')} COMMIT; ${statistics}`);
        return context.mock.method(Object.getPrototypeOf(file) as typeof file, 'prepare');
      });
      const store = await openStore(toSqliteUrl(path), options);
      await askAll(store);
      await store.close();
      const texts = new Set(mock.calls.map((call) => call.arguments[0]));
      mock.restore();
      inSqlite(path, (file) => {
        for (const text of texts) {
          for (const { detail } of file.prepare(`EXPLAIN QUERY PLAN ${text}`).all()) {
            const step = String(detail);
            const isBounded = /ORDER BY id LIMIT/.test(text);
            if (step.startsWith('SCAN') && !isBounded) assert.match(step, scans, text);
            // The place of a record is one step in the index of ids.
            const isPlace = /\(id[<>]\?\)$/.test(step);
            if (/(post_id|author_id|status) =/.test(text) && !isPlace)
              assert.doesNotMatch(step, range, text);
          }
        }
      });
    });
  }
});

describe('statements on PostgreSQL', { skip: skipPostgres }, () => {
  let url: string;
  before(async () => {
    url = await database.createDatabase();
    await (await openStore(url, driverOptions())).close();
    await database.query(url, `SET search_path = inkwell; ${filling}`);
    await database.query(url, 'VACUUM ANALYZE');
  });

  // With a plan for all values, and, behind a pooler, with one for each.
  for (const parameters of isLong ? ['', '?prepare=false'] : ['']) {
    it(`read what is answered${parameters}`, async () => {
      await database.query(url, 'SELECT pg_stat_reset()');
      const store = await openStore(url + parameters, driverOptions({ connectionsMax: 1 }));
      for (let round = 0; round < 8; round += 1) await askAll(store);
      await store.close();
      // A connection adds to the statistics when it ends.
      const others = `SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`;
      await until('the end', async () => (await database.query(url, others)).length === 0);
      const read = await database.query(
        url,
        `SELECT relname, 'in order' AS how, seq_tup_read::int AS rows FROM pg_stat_user_tables
        UNION ALL SELECT indexrelname, 'by index', idx_tup_read::int FROM pg_stat_user_indexes`,
      );
      const found = read.filter(({ rows }) => Number(rows) > 2 * rowsMax);
      assert.deepEqual(found, []);
    });
  }
});
