/** `GET /posts?author=` and `allPosts(author:)`: the posts of one author (R46). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codes, post } from '../support/graphql-http.ts';
import { type Listed, pluck, readPages } from '../support/lists.ts';
import { logIn } from '../support/login.ts';
import { startServer } from '../support/server.ts';

test('posts are listed by their author, in pages and by status too (R46)', async (t) => {
  const server = await startServer(t);
  const authorization = `Bearer ${await logIn(server)}`;
  const { id: author } = (await (
    await server.fetch('/profile', { headers: { authorization } })
  ).json()) as { id: string };
  const ids: string[] = [];
  for (const title of ['a', 'b', 'c']) {
    const headers = { authorization, 'content-type': 'application/json' };
    const body = JSON.stringify({ title, content: 'text' });
    const created = await server.fetch('/posts', { method: 'POST', headers, body });
    ids.unshift(created.headers.get('location')?.slice('/posts/'.length) ?? '');
    await server.send('POST', '/posts', { title, content: 'of nobody' });
  }
  const headers = { 'content-type': 'application/merge-patch+json' };
  const body = '{"status":"PUBLISHED"}';
  await server.fetch(`/posts/${ids[1]}`, { method: 'PATCH', headers, body });
  const listed = async (query: string) => {
    const pages = await readPages(server, `/posts?${query}`);
    return [pages.length, ...pluck(pages.flat(), 'id')];
  };
  const text = `query ($author: ID, $status: PostStatus, $after: ID) {
    allPosts(author: $author, status: $status, after: $after) { id } }`;
  const asked = async (variables: object) => {
    const asking = await post(server, { query: text, variables });
    const { data } = asking.body as { data: { allPosts: Listed[] } };
    return pluck(data.allPosts, 'id');
  };
  const nobody = '00000000-0000-7000-8000-0000000000ff';
  assert.deepEqual(await listed(`author=${author}`), [1, ...ids]);
  assert.deepEqual(await listed(`author=${author.toUpperCase()}&limit=2`), [2, ...ids]);
  assert.deepEqual(await listed(`limit=1&status=DRAFT&author=${author}`), [2, ids[0], ids[2]]);
  assert.deepEqual(await listed(`after=${ids[0]}&author=${author}`), [1, ids[1], ids[2]]);
  assert.deepEqual(await listed(`author=${nobody}`), [1]);
  assert.deepEqual(await asked({ author: author.toUpperCase() }), ids);
  assert.deepEqual(await asked({ author, status: 'DRAFT' }), [ids[0], ids[2]]);
  assert.deepEqual(await asked({ author, after: ids[0] }), [ids[1], ids[2]]);
  assert.deepEqual(await asked({ author: nobody }), []);
  assert.deepEqual(
    await asked({ author: null }),
    pluck((await readPages(server, '/posts')).flat(), 'id'),
  );
  for (const query of ['author=x', `author=${author}&author=${author}`]) {
    const response = await server.fetch(`/posts?${query}`);
    const { code, parameter } = (await response.json()) as Record<string, string>;
    assert.deepEqual(
      [response.status, code, parameter],
      [400, 'invalid_parameter', 'author'],
      query,
    );
  }
  const refused = await post(server, { query: text, variables: { author: 'x' } });
  assert.deepEqual(codes(refused.body), ['BAD_USER_INPUT']);
});
