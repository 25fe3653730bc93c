/**
 * Stores of any size. One post has a tenth of the posts' number as comments, and a tenth of the
 * posts has one author; all others have neither. In a database each status is that of a third, and
 * what is published was published in another order than it was created; on PostgreSQL two thirds of
 * all posts have two comments more.
 */

import { connect } from '#support/session.js';
import { logIn, send, text } from './scenarios.mjs';

const createdAt = '2026-02-03T04:05:06.7';
const author = toId(0);

/** @type {string} No constant, because the types of the oldest Node do not have the module. */
export const sqliteName = 'node:sqlite';

/** Of the post with this number. */
export function toId(number) {
  return `01900000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
}

const content = JSON.stringify(text);
export const createPost = `createPost(createPostInput: { title: "A", content: ${content} })`;

export function addComment(postId) {
  return `addComment(commentInput: { postId: "${postId}", content: ${content} })`;
}

/** The header that a request of the demo account carries. */
export async function authorize(url) {
  return { Authorization: `Bearer ${await logIn(url)}` };
}

/** Carries out mutations, at most a thousand, in a batch with fifty each; returns their values. */
export async function mutate(url, mutations, headers) {
  const fields = mutations.map((mutation, at) => `f${at}: ${mutation}`);
  const batch = [];
  for (let at = 0; at < fields.length; at += 50) {
    batch.push({ query: `mutation { ${fields.slice(at, at + 50).join(' ')} }` });
  }
  const response = await send(`${url}/graphql`, batch, headers);
  const results = /** @type {{ data: object }[]} */ (await response.json());
  return results.flatMap(({ data }) => Object.values(data));
}

/** By requests. Returns the posts' ids. */
export async function fillMemory(url, posts) {
  const ids = [];
  while (ids.length < posts) {
    const headers = ids.length < posts / 10 ? await authorize(url) : {};
    const mutations = Array(Math.min(1000, posts - ids.length)).fill(createPost);
    ids.push(...(await mutate(url, mutations, headers)));
  }
  for (let left = posts / 10; left > 0; left -= 1000) {
    await mutate(url, Array(Math.min(1000, left)).fill(addComment(ids[0])));
  }
  return ids;
}

/** The tables are there, and empty. */
export async function fillSqlite(file, posts) {
  const { DatabaseSync } = await import(sqliteName);
  const database = new DatabaseSync(file);
  const id = (number) => `'01900000-0000-7000-8000-' || printf('%012x', ${number})`;
  const numbers = (count) =>
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`;
  database.exec(`BEGIN;
    INSERT INTO authors VALUES ('${author}', 'An author', 'a@example.org', '${createdAt}');
    ${numbers(posts)} INSERT INTO posts
        (id, title, content, status, created_at, author_id, published_at)
      SELECT ${id('n')}, 'A', '${text}',
        CASE n % 3 WHEN 0 THEN 'DRAFT' WHEN 1 THEN 'PUBLISHED' ELSE 'PENDING_MODERATION' END,
        '${createdAt}', CASE WHEN n <= ${posts / 10} THEN '${author}' END,
        CASE WHEN n % 3 = 1 THEN strftime('%Y-%m-%dT%H:%M:%S',
          1800000000 + n * 7919 % ${posts}, 'unixepoch') END FROM numbers;
    ${numbers(posts / 10)} INSERT INTO comments (id, post_id, content, created_at)
      SELECT ${id('n')}, '${toId(1)}', '${text}', '${createdAt}' FROM numbers;
    COMMIT; ANALYZE`);
  database.close();
}

/** The tables are there, and empty. */
export async function fillPostgres(url, posts) {
  const sql = connect(url);
  const id = `('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`;
  await sql.run(`
    INSERT INTO inkwell.authors (id, name, email, created_at)
      VALUES ('${author}', 'An author', 'a@example.org', '${createdAt}');
    INSERT INTO inkwell.posts (id, title, content, status, created_at, author_id, published_at)
      SELECT ${id}, 'A', '${text}', (ARRAY['DRAFT', 'PUBLISHED', 'PENDING_MODERATION'])[n % 3 + 1],
        '${createdAt}', CASE WHEN n <= ${posts / 10} THEN '${author}'::uuid END,
        CASE WHEN n % 3 = 1 THEN to_char(to_timestamp(1800000000 + n::bigint * 7919 % ${posts})
          AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') END
      FROM generate_series(1, ${posts}) AS n;
    -- That there are these posts is not checked again, and no trigger numbers the comments.
    SET session_replication_role = replica;
    INSERT INTO inkwell.comments (seq, id, post_id, content, created_at)
      SELECT nextval('inkwell.comments_seq_seq'), gen_random_uuid(), ${id}, '${text}', '${createdAt}'
      FROM generate_series(1, ${posts}) AS n, generate_series(1, 2) WHERE n % 3 > 0;
    INSERT INTO inkwell.comments (seq, id, post_id, content, created_at)
      SELECT nextval('inkwell.comments_seq_seq'), ${id}, '${toId(1)}', '${text}', '${createdAt}'
      FROM generate_series(1, ${posts / 10}) AS n`);
  await sql.run('VACUUM ANALYZE');
  await sql.end();
}
