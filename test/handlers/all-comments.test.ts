/** Comments of all posts: listed, and removed together (R52). */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Blog, type Headers, openBlog, type Person } from '../support/drafts.ts';
import { times } from '../support/lists.ts';
import { ask, contents, type Json, missing, read } from '../support/moderating.ts';
import { inMemory, stores } from '../support/stores.ts';

interface Sender {
  readonly as: Person;
  readonly headers?: Headers;
}
const removeAll = (blog: Blog, ids: readonly unknown[], { as, headers = {} }: Sender) =>
  blog.send('POST', '/comments/removals', { body: { ids }, as, headers });

for (const place of stores) {
  describe(`comments of all posts on a store ${place.name}`, { skip: place.skip }, () => {
    it('removes comments together, all or none, by those who may remove each', async (t) => {
      for (const REQUIRE_AUTH of ['none', 'writes', 'owners']) {
        const env = { REQUIRE_AUTH, ...(REQUIRE_AUTH !== 'none' && { COMMENTS: 'moderated' }) };
        const blog = await openBlog(t, place, { env });
        const [post, other] = [await blog.post('PUBLISHED'), await blog.post('DRAFT', 'admin')];
        await blog.send('PATCH', `/posts/${other}`, {
          body: { status: 'PUBLISHED' },
          as: 'admin',
        });
        const ids = [await blog.comment(post, 'a'), await blog.comment(post, 'b')];
        const [a = '', b = ''] = ids;
        const c = await blog.comment(other, 'c', 'admin');
        const waiting = await blog.comment(post, 'w', 'other');
        const statusOf = async (given: readonly unknown[], as: Person): Promise<number> =>
          (await removeAll(blog, given, { as })).status;
        for (const given of [[], [1], ['x'], [null], times(1_001).map(() => a)]) {
          assert.equal(await statusOf(given, 'admin'), 422);
        }
        const refused = await removeAll(blog, [a, missing, b], { as: 'admin' });
        assert.equal(refused.status, 404);
        assert.match(await refused.text(), new RegExp(missing));
        const isOwned = REQUIRE_AUTH === 'owners';
        if (REQUIRE_AUTH !== 'none') assert.equal(await statusOf([a], 'anonymous'), 401);
        if (isOwned) assert.equal(await statusOf([a, c], 'author'), 403);
        if (isOwned) assert.equal(await statusOf([a], 'other'), 403);
        if (REQUIRE_AUTH !== 'none') assert.equal(await statusOf([a, waiting], 'other'), 404);
        assert.equal(await contents(blog, '/comments', 'admin'), 'w c b a');
        const who = REQUIRE_AUTH === 'none' ? 'anonymous' : 'author';
        const headers = { 'Idempotency-Key': 'remove' };
        for (const time of [0, 1]) {
          const response = await removeAll(blog, [a, waiting, a.toUpperCase()], {
            as: who,
            headers,
          });
          assert.equal(response.status, 200);
          assert.deepEqual(await response.json(), { removed: 2 });
          const replayed = response.headers.get('idempotency-replayed');
          assert.equal(replayed, time === 1 ? 'true' : null);
        }
        assert.equal((await removeAll(blog, [a, b], { as: who, headers })).status, 422);
        assert.equal(await contents(blog, '/comments', 'admin'), 'c b');
        if (REQUIRE_AUTH === 'writes') assert.equal(await statusOf([c], 'other'), 200);
        const removals = blog.one.logged.filter(
          ({ action, event }) => action === 'POST /comments/removals' && event === 'change',
        );
        const removed = removals.map(({ id }) => id);
        assert.deepEqual(removed.slice(0, 2), [a, waiting]);
        assert.equal(removed.length, REQUIRE_AUTH === 'writes' ? 3 : 2);
      }
    });

    it('lists the comments of all posts that exist for the reader, in pages', async (t) => {
      const blog = await openBlog(t, place, 'owners');
      const [open, draft] = [await blog.post('PUBLISHED'), await blog.post('DRAFT')];
      const ids: string[] = [];
      // More than a page of them is read at once, before and after those that others see.
      for (const at of times(60)) await blog.comment(draft, `hidden ${at}`);
      for (const at of times(7)) ids.push(await blog.comment(at % 2 === 0 ? open : draft, `${at}`));
      for (const at of times(60)) await blog.comment(draft, `hidden ${at}`);
      const hidden = times(60).map((at) => `hidden ${59 - at}`);
      const everything = [...hidden, '6', '5', '4', '3', '2', '1', '0', ...hidden].join(' ');
      for (const [as, expected] of [
        ['anonymous', '6 4 2 0'],
        ['other', '6 4 2 0'],
        ['author', everything],
        ['admin', everything],
      ] as const) {
        for (const path of ['/comments', '/comments?status=PUBLISHED', '/comments?limit=900']) {
          assert.equal(await contents(blog, path, as), expected, `${as} ${path}`);
        }
        assert.equal(await contents(blog, '/comments?status=PENDING', as), '');
        // A link is there if there is more for the reader, and leads to that.
        for (const limit of [1, 2, 3, 4]) {
          let next: string | undefined = `/comments?limit=${limit}`;
          const words: string[] = [];
          for (let pages = 0; next !== undefined && pages < 4; pages += 1) {
            const response: Response = await blog.nodes[1].fetch(next, {
              headers: blog.people[as],
            });
            const page = (await response.json()) as { content: string }[];
            assert.ok(page.length > 0, next);
            words.push(...page.map(({ content }) => content));
            next = /^<([^>]*)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1];
          }
          const some = expected.match(/(?:hidden )?\d+/g)?.slice(0, words.length);
          assert.deepEqual(words, some, `${as} ${limit}`);
          if (expected.length < 10) assert.equal(words.length, 4, `${as} ${limit}`);
        }
        const query = `{ comments(first: 3) { content post { id title } status name author { id } } }`;
        const { data } = (await ask(blog, query, as)) as {
          data: { comments: { content: string; post: Json }[] };
        };
        const three = expected.match(/(?:hidden )?\d+/g)?.slice(0, 3);
        assert.deepEqual(
          data.comments.map(({ content }) => content),
          three,
        );
        assert.deepEqual(data.comments[0]?.post, {
          id: expected.length < 10 ? open : draft,
          title: 'A',
        });
      }
      const [comment] = (await read(blog, '/comments?limit=1')) as [Json];
      assert.deepEqual(Object.keys(comment), ['id', 'content', 'createdAt', 'post']);
      assert.deepEqual(comment['post'], { id: open, title: 'a' });
      assert.equal(await contents(blog, `/comments?after=${ids[4]}`), '2 0');
      await blog.setStatus(draft, 'PUBLISHED');
      assert.equal(await contents(blog, '/comments'), everything);
      await blog.remove(open);
      assert.equal(
        await contents(blog, '/comments?after='),
        [...hidden, '5', '3', '1', ...hidden].join(' '),
      );
      for (const query of ['status=DRAFT', 'status=PENDING&status=PENDING', 'limit=0', 'after=x']) {
        assert.equal((await blog.one.fetch(`/comments?${query}`)).status, 400, query);
      }
    });
  });
}

describe('a request for comments of all posts', () => {
  it('is within its budget', async (t) => {
    const env = { REQUIRE_AUTH: 'none', GRAPHQL_OBJECTS_MAX: '100' };
    const blog = await openBlog(t, inMemory, { env });
    const post = await blog.post('PUBLISHED');
    for (const at of times(60)) await blog.comment(post, `${at}`);
    for (const [query, isAllowed] of [
      ['{ comments { id } }', true],
      ['{ comments(first: 60) { id post { id } } }', false],
      ['{ comments(first: 50) { id post { id } } }', true],
      ['{ comments(first: 50) { id post { id author { id } } } }', false],
      ['{ a: comments(first: 60) { id } b: comments(first: 60) { id } }', false],
      ['{ comments(first: 9) { post { comments(first: 1) { id } } } }', false],
      ['{ comments(first: 8) { post { comments(first: 1) { id } } } }', true],
    ] as const) {
      const { errors } = await ask(blog, query, 'anonymous');
      assert.equal(errors === undefined, isAllowed, query);
    }
    const listed = (await ask(blog, '{ comments { content } }', 'anonymous'))['data'] as {
      comments: { content: string }[];
    };
    assert.deepEqual(
      listed.comments.map(({ content }) => content),
      times(60).map((at) => `${59 - at}`),
    );
  });
});
