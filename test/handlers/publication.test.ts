/** When posts were published, and the lists in that order (R49), over REST and GraphQL. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBlog } from '../support/drafts.ts';
import { post } from '../support/graphql-http.ts';
import { type Listed, pluck, readPages } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { type Sent, startServer, type TestServer } from '../support/server.ts';
import { inMemory, stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

async function ask<T>(server: TestServer, query: string, headers: Sent = {}): Promise<T> {
  return ((await post(server, { query }, headers)).body as { data: T }).data;
}

test('a post has the date of its first publication, whichever way that comes', async (t) => {
  const server = await startServer(t);
  const show = async (path: string) => {
    const query = `{ postById(postId: "${path.slice(7)}") { title rawTitle createdAt publishedAt } }`;
    type Shown = Readonly<Record<'title' | 'rawTitle' | 'createdAt' | 'publishedAt', string>>;
    return (await ask<{ postById: Shown }>(server, query)).postById;
  };
  const status = 'PUBLISHED';
  const texts = { title: 'As written', content: 'text' };
  const update = (path: string, to: string) =>
    ask(server, `mutation { updatePost(id: "${path.slice(7)}", changes: {status: ${to}}) { id } }`);
  const type = { 'Content-Type': 'application/merge-patch+json' };
  const patch = (path: string, more: Sent) =>
    server.send('PATCH', path, { status }, { ...type, ...more });
  const publish: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
    PATCH: (path) => patch(path, { 'Idempotency-Key': path.slice(7) }),
    PUT: (path) => server.send('PUT', path, { ...texts, status }),
    'If-Match': async (path) =>
      patch(path, { 'If-Match': (await server.fetch(path)).headers.get('etag') ?? '' }),
    updatePost: (path) => update(path, status),
  };
  for (const [way, act] of Object.entries(publish)) {
    const path = await server.make('/posts', texts);
    const { title, rawTitle, publishedAt: before, createdAt } = await show(path);
    assert.deepEqual([title, rawTitle, before], ['AS WRITTEN', 'As written', null], way);
    await act(path);
    const { publishedAt } = await show(path);
    assert.ok(publishedAt >= createdAt, way);
    for (const change of [() => update(path, 'DRAFT'), () => act(path)]) {
      await change();
      assert.equal((await show(path)).publishedAt, publishedAt, way);
    }
    // R11 has the members of REST.
    const members = Object.keys(await server.read<object>(path));
    assert.deepEqual(members, ['id', 'title', 'content', 'status', 'createdAt'], way);
  }
});

/** The ids that somebody gets by every list of posts, of all and of one author. */
async function listsOf(node: TestServer, author: string, headers: Sent) {
  const fetch = (path: string): Promise<Response> => node.fetch(path, { headers });
  const rest = async (query: string) =>
    pluck((await readPages({ fetch }, `/posts?${query}`)).flat(), 'id');
  const graphql = async (args: string) => {
    const query = `{ allPosts${args} { id } }`;
    return pluck((await ask<{ allPosts: Listed[] }>(node, query, headers)).allPosts, 'id');
  };
  /** Inside the author of a post. */
  const nested = async (first: string) => {
    const query = `{ allPosts(first: 1) { author { posts${first} { id } } } }`;
    type Found = { allPosts: { author: { posts: Listed[] } }[] };
    const [found] = (await ask<Found>(node, query, headers)).allPosts;
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
    const title = `lists of published posts are by date, ${place.name}, with ${mode}`;
    test(title, { skip: place.skip }, async (t) => {
      const blog = await openBlog(t, place, mode);
      const { nodes, people } = blog;
      const { id: author } = await blog.one.read<{ id: string }>('/profile', people.author);
      const created: string[] = [];
      while (created.length < 4) created.unshift(await blog.post('DRAFT'));
      const [d = '', c = '', b = '', a = ''] = created;
      /** Every list, of each node, for everybody. */
      const check = async (published: readonly string[]): Promise<void> => {
        for (const node of nodes) {
          for (const person of ['anonymous', 'admin'] as const) {
            const lists = await listsOf(node, author, people[person]);
            const seesAll = mode === 'none' || person === 'admin';
            for (const ids of lists.whole) assert.deepEqual(ids, seesAll ? created : published);
            for (const ids of lists.published) assert.deepEqual(ids, published);
          }
        }
      };
      /** The pages after a post, of whatever status, also of one that is gone. */
      const checkAfter = async (id: string, published: readonly string[]): Promise<void> => {
        const [node] = nodes;
        const pages = await readPages(node, `/posts?status=PUBLISHED&after=${id}&limit=1`);
        assert.deepEqual(pluck(pages.flat(), 'id'), published);
        const args = `after: "${id}", status: PUBLISHED, author: "${author}"`;
        const { allPosts } = await ask<{ allPosts: Listed[] }>(
          node,
          `{ allPosts(${args}) { id } }`,
        );
        assert.deepEqual(pluck(allPosts, 'id'), published);
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
