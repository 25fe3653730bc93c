/** When posts were published, and the lists in that order (R49), over REST and GraphQL. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Headers, openBlog } from '../support/drafts.ts';
import { post } from '../support/graphql-http.ts';
import { type Listed, pluck, readPages } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { inMemory, stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

interface Shown {
  readonly title: string;
  readonly rawTitle: string;
  readonly createdAt: string;
  readonly publishedAt: string | null;
}

async function ask<T>(server: TestServer, query: string): Promise<T> {
  const { body } = await post(server, { query });
  return (body as { data: T }).data;
}

/** Creates a post and returns its path. */
async function create(server: TestServer, title: string): Promise<string> {
  const created = await server.send('POST', '/posts', { title, content: 'text' });
  return created.headers.get('location') ?? '';
}

/** Gives a post a status. */
async function patch(
  server: TestServer,
  [path, status]: readonly [string, string],
  more = {},
): Promise<Response> {
  const headers = { 'Content-Type': 'application/merge-patch+json', ...more };
  return server.fetch(path, { method: 'PATCH', headers, body: JSON.stringify({ status }) });
}

test('a post has the date of its first publication, whichever way that comes', async (t) => {
  const server = await startServer(t);
  const show = async (path: string): Promise<Shown> => {
    const query = `{ postById(postId: "${path.slice(7)}") { title rawTitle createdAt publishedAt } }`;
    return (await ask<{ postById: Shown }>(server, query)).postById;
  };
  const status = 'PUBLISHED';
  const update = (path: string, to: string) =>
    ask(server, `mutation { updatePost(id: "${path.slice(7)}", changes: {status: ${to}}) { id } }`);
  const publish: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
    PATCH: (path) => patch(server, [path, status], { 'Idempotency-Key': path.slice(7) }),
    PUT: (path) => server.send('PUT', path, { title: 'As written', content: 'text', status }),
    'If-Match': async (path) =>
      patch(server, [path, status], { 'If-Match': (await server.fetch(path)).headers.get('etag') }),
    updatePost: (path) => update(path, status),
  };
  for (const [way, act] of Object.entries(publish)) {
    const path = await create(server, 'As written');
    const { publishedAt: before, ...draft } = await show(path);
    assert.deepEqual(
      [draft.title, draft.rawTitle, before],
      ['AS WRITTEN', 'As written', null],
      way,
    );
    await act(path);
    const { publishedAt, createdAt } = await show(path);
    assert.ok(publishedAt !== null && publishedAt >= createdAt, way);
    await update(path, 'DRAFT');
    assert.equal((await show(path)).publishedAt, publishedAt, way);
    await act(path);
    assert.equal((await show(path)).publishedAt, publishedAt, way);
    // R11 has the members of REST.
    const members = Object.keys((await (await server.fetch(path)).json()) as object);
    assert.deepEqual(members, ['id', 'title', 'content', 'status', 'createdAt'], way);
  }
});

/** The ids that somebody gets by every list of posts, of all and of one author. */
async function listsOf(node: TestServer, author: string, headers: Headers) {
  const rest = async (query: string) => {
    const fetch = (path: string): Promise<Response> => node.fetch(path, { headers });
    return pluck((await readPages({ fetch }, `/posts?${query}`)).flat(), 'id');
  };
  const graphql = async (args: string) => {
    const { body } = await post(node, { query: `{ allPosts${args} { id } }` }, headers);
    return pluck((body as { data: { allPosts: Listed[] } }).data.allPosts, 'id');
  };
  /** Inside the author of a post. */
  const nested = async (first: string) => {
    const query = `{ allPosts(first: 1) { author { posts${first} { id } } } }`;
    const { body } = await post(node, { query }, headers);
    const [found] = (body as { data: { allPosts: { author: { posts: Listed[] } }[] } }).data
      .allPosts;
    return pluck(found?.author.posts ?? [], 'id');
  };
  const [one, of] = [`author=${author}&`, `author: "${author}"`];
  const whole = [rest(''), graphql('(first: 9)'), rest(`${one}limit=3`), graphql(`(${of})`)];
  const published = [
    rest('status=PUBLISHED&limit=1'),
    rest(`${one}status=PUBLISHED`),
    graphql(`(${of}, status: PUBLISHED, first: 9)`),
  ];
  return {
    whole: await Promise.all([...whole, nested(''), nested('(first: 9)')]),
    published: await Promise.all(published),
  };
}

for (const place of stores) {
  // The modes differ before the store is asked.
  for (const mode of isLong || place === inMemory ? ['owners', 'none'] : ['owners']) {
    const { name, skip } = place;
    test(`lists of published posts are by date, ${name}, with ${mode}`, { skip }, async (t) => {
      const blog = await openBlog(t, place, mode);
      const { nodes, people } = blog;
      const profile = await blog.send('GET', '/profile');
      const { id: author } = (await profile.json()) as { readonly id: string };
      const created: string[] = [];
      while (created.length < 4) created.unshift(await blog.post('DRAFT'));
      const [d = '', c = '', b = '', a = ''] = created;
      /** Every list, of each node, for everybody. */
      const check = async (published: readonly string[]): Promise<void> => {
        for (const node of nodes) {
          for (const person of ['anonymous', 'other', 'admin'] as const) {
            const lists = await listsOf(node, author, people[person]);
            const seesAll = mode === 'none' || person === 'admin';
            for (const ids of lists.whole) assert.deepEqual(ids, seesAll ? created : published);
            for (const ids of lists.published) assert.deepEqual(ids, published);
          }
        }
      };
      /** The pages after a post, of whatever status, also of one that is gone. */
      const checkAfter = async (id: string, published: readonly string[]): Promise<void> => {
        for (const node of nodes) {
          const rest = `/posts?status=PUBLISHED&after=${id}`;
          const query = `{ allPosts(after: "${id}", status: PUBLISHED, author: "${author}") { id } }`;
          const { body } = await post(node, { query });
          assert.deepEqual(
            pluck((await readPages(node, `${rest}&limit=1`)).flat(), 'id'),
            published,
          );
          assert.deepEqual(body, { data: { allPosts: published.map((each) => ({ id: each })) } });
        }
      };
      const published: string[] = [];
      await check(published);
      for (const id of [c, a, d, b]) {
        const before = Date.now();
        await until('a later date', () => Date.now() > before);
        await blog.setStatus(id, 'PUBLISHED');
        published.unshift(id);
        await check(published);
      }
      await checkAfter(d, [a, c]);
      await blog.setStatus(d, 'DRAFT');
      await check([b, a, c]);
      await checkAfter(d, [a, c]);
      await blog.setStatus(d, 'PUBLISHED');
      await check([b, d, a, c]);
      await blog.remove(a);
      await checkAfter(a, [c]);
    });
  }
}
