/** What is read of a database for one response stays small, or is counted, whatever is stored. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testAtLength } from '../support/long.ts';
import { skipPostgres } from '../support/postgres.ts';
import { database } from '../support/shared-postgres.ts';
import { distUrl, runInHeap, supportUrl } from '../support/small-heap.ts';
import { newSqliteFile, skipSqlite, toSqliteUrl } from '../support/sqlite.ts';

/** 120 texts of a megabyte in each table, in a process that has no room for those of one. */
const script = (path: string): string => `
  import { DatabaseSync } from 'node:sqlite';
  import { startServer } from '${supportUrl('server')}';
  const env = { STORE_URL: '${toSqliteUrl(path)}', DEMO_DATA: 'false' };
  const server = await startServer({ after() {} }, { env, memoryBytes: 96 * 2 ** 20, probed: false });
  const database = new DatabaseSync(${JSON.stringify(path)});
  const fill = (count, text) => database.exec(
    'WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ' + count + ')' + text
  );
  const id = (n) => "printf('%08x-0000-4000-8000-000000000000', " + n + ')';
  const long = 'hex(zeroblob(500000))';
  const posts = (content) => "INSERT INTO posts (id, title, content, status, created_at)" +
    " SELECT " + id('n') + ", 'a', " + content + ", 'DRAFT', '2024-01-01T00:00:00' FROM n";
  const comments = (post) => 'INSERT INTO comments (id, post_id, content, created_at)' +
    ' SELECT ' + id('n') + ', ' + post + ', ' + long + ", '2024-01-01T00:00:00' FROM n";
  const found = {};
  const ask = async (what, query) => {
    const response = await server.send('POST', '/graphql', { query });
    const { errors } = await response.json();
    found[what] = [response.status, errors?.[0].extensions.code];
  };
  fill(2, posts("'b'"));
  fill(120, comments(id(1)));
  await ask('comments of one post', '{ allPosts { comments { id } } }');
  await ask('a page of posts', '{ allPosts(first: 1) { id } }');
  database.exec('DELETE FROM posts');
  fill(120, posts("'b'"));
  fill(120, comments(id('n')));
  await ask('comments of many posts', '{ allPosts { comments { id } } }');
  database.exec('DELETE FROM articles');
  fill(120, "INSERT INTO articles SELECT n, json_object('id', n, 'title', " + long + ') FROM n');
  const response = await server.fetch('/api/articles', {
    method: 'PATCH', body: '[]', headers: { 'content-type': 'application/json-patch+json' },
  });
  found['patch of all articles'] = [response.status, (await response.json()).code];
  console.log(JSON.stringify(found));
  process.exit();
`;

test('long records take no more memory than there is', { skip: skipSqlite }, async (t) => {
  const found: unknown = JSON.parse(runInHeap(96, script(await newSqliteFile(t))));
  assert.deepEqual(found, {
    'comments of one post': [200, 'PAYLOAD_TOO_LARGE'],
    'a page of posts': [200, null],
    'comments of many posts': [200, 'PAYLOAD_TOO_LARGE'],
    'patch of all articles': [413, 'content_too_large'],
  });
});

/** Listens where there are many long comments, and while as many more come at once. */
const listening = (url: string): string => `
  import { openStore } from '${distUrl('store/open.js')}';
  import { driverOptions } from '${supportUrl('driver-options')}';
  import { connect } from '${supportUrl('session')}';
  const store = await openStore('${url}', driverOptions());
  const { id } = await store.posts.create({ title: 'a', content: 'b', authorId: null });
  const sql = connect('${url}');
  const comment = () => sql\`INSERT INTO inkwell.comments (id, post_id, content, created_at)
    SELECT gen_random_uuid(), \${id}, repeat('x', 1000000), 'now' FROM generate_series(1, 60)\`;
  await comment();
  let heard = 0;
  const all = new Promise((resolve) => {
    store.comments.watch(({ comment: { content } }) => {
      heard += content.length;
      if (content === 'last') resolve();
    });
  });
  await store.comments.add(id, 'first');
  await comment();
  await store.comments.add(id, 'last');
  await all;
  console.log(heard);
  process.exit();
`;

testAtLength('a feed of long comments takes a few at a time', async (t) => {
  if (skipPostgres) return t.skip(skipPostgres);
  const heard = runInHeap(48, listening(await database.createDatabase()));
  assert.equal(Number(heard), 60_000_009);
});
