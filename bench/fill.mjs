/**
 * Stores of any size. One post has a tenth of the posts' number as comments, and a tenth of the
 * posts has one author; all others have neither.
 */

import postgres from 'postgres';

export const text =
  'An answer of the length that a person would write under a post, and no longer.';
const createdAt = '2026-02-03T04:05:06.7';
const author = toId(0);

/** Of the post with this number. */
export function toId(number) {
  return `01900000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
}

/** By requests: batches of twenty mutations with fifty fields each. Returns the posts' ids. */
export async function fillMemory(url, posts) {
  const send = async (path, body, headers = {}) => {
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers } };
    return (await fetch(url + path, { ...init, body: JSON.stringify(body) })).json();
  };
  const write = async (fields, headers) => {
    const batch = [];
    for (let at = 0; at < fields.length; at += 50) {
      batch.push({ query: `mutation { ${fields.slice(at, at + 50).join(' ')} }` });
    }
    const results = await send('/graphql', batch, headers);
    return results.flatMap(({ data }) => Object.values(data));
  };
  const content = JSON.stringify(text);
  const post = `createPost(createPostInput: { title: "A", content: ${content} })`;
  const fields = (count, field) => Array.from({ length: count }, (_, n) => `f${n}: ${field}`);
  const user = { username: 'user', password: 'password' };
  const ids = [];
  while (ids.length < posts) {
    const isAuthored = ids.length < posts / 10;
    const { access_token: token } = isAuthored ? await send('/auth/login', user) : {};
    const headers = isAuthored ? { Authorization: `Bearer ${token}` } : {};
    ids.push(...(await write(fields(Math.min(1000, posts - ids.length), post), headers)));
  }
  const comment = `addComment(commentInput: { postId: "${ids[0]}", content: ${content} })`;
  for (let left = posts / 10; left > 0; left -= 1000) {
    await write(fields(Math.min(1000, left), comment));
  }
  return ids;
}

/** The tables are there, and empty. */
export async function fillSqlite(file, posts) {
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(file);
  const id = (number) => `'01900000-0000-7000-8000-' || printf('%012x', ${number})`;
  const numbers = (count) =>
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`;
  database.exec(`BEGIN;
    INSERT INTO authors VALUES ('${author}', 'An author', 'a@example.org', '${createdAt}');
    ${numbers(posts)} INSERT INTO posts (id, title, content, status, created_at, author_id)
      SELECT ${id('n')}, 'A', '${text}', 'DRAFT', '${createdAt}',
        CASE WHEN n <= ${posts / 10} THEN '${author}' END FROM numbers;
    ${numbers(posts / 10)} INSERT INTO comments (id, post_id, content, created_at)
      SELECT ${id('n')}, '${toId(1)}', '${text}', '${createdAt}' FROM numbers;
    COMMIT; ANALYZE`);
  database.close();
}

/** The tables are there, and empty. */
export async function fillPostgres(url, posts) {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  const id = `('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`;
  await sql.unsafe(`
    INSERT INTO inkwell.authors (id, name, email, created_at)
      VALUES ('${author}', 'An author', 'a@example.org', '${createdAt}');
    INSERT INTO inkwell.posts (id, title, content, status, created_at, author_id)
      SELECT ${id}, 'A', '${text}', 'DRAFT', '${createdAt}',
        CASE WHEN n <= ${posts / 10} THEN '${author}'::uuid END
      FROM generate_series(1, ${posts}) AS n;
    INSERT INTO inkwell.comments (id, post_id, content, created_at)
      SELECT ${id}, '${toId(1)}', '${text}', '${createdAt}'
      FROM generate_series(1, ${posts / 10}) AS n`);
  await sql.unsafe('VACUUM ANALYZE');
  await sql.end();
}
