/** Comments of all posts: listed, and removed together (R52). */

import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { openBlog, type Person } from '../support/drafts.ts';
import { pluck, readPages, times } from '../support/lists.ts';
import { ask, contents, type Json, missing, read } from '../support/moderating.ts';
import { inMemory, stores } from '../support/stores.ts';

for (const place of stores) {
  describe(`comments of all posts on a store ${place.name}`, { skip: place.skip }, () => {
    for (const mode of ['none', 'writes', 'owners']) {
      it(`are removed together, all or none, by those who may remove each (${mode})`, async (t) => {
        const env = { REQUIRE_AUTH: mode, ...(mode !== 'none' && { COMMENTS: 'moderated' }) };
        const blog = await openBlog(t, place, { env });
        const post = await blog.post('PUBLISHED');
        const [a, b] = [await blog.comment(post, 'a'), await blog.comment(post, 'b')];
        const c = await blog.comment(await blog.post('PUBLISHED', 'admin'), 'c', 'admin');
        const waiting = await blog.comment(post, 'w', 'other');
        const remove = (ids: readonly unknown[], as: Person, headers = {}) =>
          blog.send('POST', '/comments/removals', { body: { ids }, as, headers });
        const wrong = [[], [1], ['x'], [null], times(1_001).map(() => a)];
        const rows: readonly (readonly [ids: readonly unknown[], as: Person, status: number])[] = [
          ...wrong.map((ids) => [ids, 'admin', 422] as const),
          ...(mode === 'none'
            ? []
            : ([
                [[a], 'anonymous', 401],
                [[a, waiting], 'other', 404],
              ] as const)),
          ...(mode === 'owners'
            ? ([
                [[a, c], 'author', 403],
                [[a], 'other', 403],
              ] as const)
            : []),
        ];
        for (const [ids, as, status] of rows) assert.equal((await remove(ids, as)).status, status);
        const refused = await remove([...times(998).map(() => a), missing, b], 'admin');
        assert.equal(refused.status, 404);
        assert.match(await refused.text(), new RegExp(missing));
        assert.equal(await contents(blog, '/comments', 'admin'), 'w c b a');
        const who = mode === 'none' ? 'anonymous' : 'author';
        const keyed = { 'Idempotency-Key': 'remove' };
        for (const replayed of [null, 'true']) {
          const response = await remove([a, waiting, a.toUpperCase()], who, keyed);
          assert.deepEqual([response.status, await response.json()], [200, { removed: 2 }]);
          assert.equal(response.headers.get('idempotency-replayed'), replayed);
        }
        assert.equal((await remove([a, b], who, keyed)).status, 422);
        assert.equal(await contents(blog, '/comments', 'admin'), 'c b');
        if (mode === 'writes') assert.equal((await remove([c], 'other')).status, 200);
        const removals = blog.one.logged.filter(
          ({ action, event }) => action === 'POST /comments/removals' && event === 'change',
        );
        const expected = mode === 'writes' ? [a, waiting, c] : [a, waiting];
        assert.deepEqual(pluck(removals, 'id'), expected);
      });
    }

    it('are listed as they exist for the reader, in pages', async (t) => {
      const blog = await openBlog(t, place, 'owners');
      const [open, draft] = [await blog.post('PUBLISHED'), await blog.post('DRAFT')];
      const ids: string[] = [];
      // More than a page of them is read at once, before and after those that others see.
      const hide = () => Promise.all(times(60).map(() => blog.comment(draft, 'hidden')));
      await hide();
      for (const at of times(7)) ids.push(await blog.comment(at % 2 === 0 ? open : draft, `${at}`));
      await hide();
      const hidden = times(60).map(() => 'hidden');
      const everything = [...hidden, '6', '5', '4', '3', '2', '1', '0', ...hidden];
      const some = ['6', '4', '2', '0'];
      for (const [as, expected] of [
        ['anonymous', some],
        ['other', some],
        ['author', everything],
        ['admin', everything],
      ] as const) {
        for (const path of ['/comments', '/comments?status=PUBLISHED', '/comments?limit=900']) {
          assert.equal(await contents(blog, path, as), expected.join(' '), `${as} ${path}`);
        }
        assert.equal(await contents(blog, '/comments?status=PENDING', as), '');
        // A link is there if there is more for the reader, and leads to that.
        const fetch = (path: string) => blog.nodes[1].fetch(path, { headers: blog.people[as] });
        for (const limit of expected === some ? [1, 2, 3, 4] : [50]) {
          const pages = await readPages({ fetch }, `/comments?limit=${limit}`);
          const words = pluck(pages.flat() as unknown as { content: string }[], 'content');
          assert.deepEqual(words, expected, `${as} ${limit}`);
          assert.equal(pages.length, Math.ceil(expected.length / limit), `${as} ${limit}`);
        }
        const query = `{ comments(first: 3) { content post { id title } status name author { id } } }`;
        const { comments } = (await ask(blog, query, as))['data'] as {
          comments: { content: string; post: Json }[];
        };
        assert.deepEqual(pluck(comments, 'content'), expected.slice(0, 3));
        const id = expected === some ? open : draft;
        assert.deepEqual(comments[0]?.post, { id, title: 'A' });
      }
      const [comment] = (await read(blog, '/comments?limit=1')) as [Json];
      assert.deepEqual(Object.keys(comment), ['id', 'content', 'createdAt', 'post']);
      assert.deepEqual(comment['post'], { id: open, title: 'a' });
      assert.equal(await contents(blog, `/comments?after=${ids[4]}`), '2 0');
      await blog.setStatus(draft, 'PUBLISHED');
      assert.equal(await contents(blog, '/comments'), everything.join(' '));
      await blog.remove(open);
      const rest = [...hidden, '5', '3', '1', ...hidden].join(' ');
      assert.equal(await contents(blog, '/comments?after='), rest);
      for (const query of ['status=DRAFT', 'status=PENDING&status=PENDING', 'limit=0', 'after=x']) {
        assert.equal((await blog.one.fetch(`/comments?${query}`)).status, 400, query);
      }
    });
  });
}

test('a request for comments of all posts is within its budget', async (t) => {
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
});

test('a page of long comments ends before its limit, with a link', async (t) => {
  const blog = await openBlog(t, inMemory, 'owners');
  const post = await blog.post('PUBLISHED');
  // Fifty are read at once, and are a mebibyte.
  for (const _ of times(52)) await blog.comment(post, 'x'.repeat(21_000));
  const pages = await readPages(blog.one, '/comments?limit=60');
  assert.deepEqual([pages[0]?.length, pages[1]?.length], [50, 2]);
});
