/** R48: a comment that waits is no event; it is one, once, when it is approved, at its place then. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { followAll, hear, openBlog } from '../support/drafts.ts';
import { isLong } from '../support/long.ts';
import { after } from '../support/resuming.ts';
import { inMemory, stores } from '../support/stores.ts';

const merge = { 'Content-Type': 'application/merge-patch+json' };

for (const place of stores) {
  // The modes differ before the store is asked.
  for (const REQUIRE_AUTH of isLong || place === inMemory ? ['writes', 'owners'] : ['owners']) {
    const title = `a comment that waits, with ${REQUIRE_AUTH}, on a store ${place.name}`;
    describe(title, { skip: place.skip }, () => {
      it('is announced once to everybody when it is approved, and not before', async (t) => {
        const blog = await openBlog(t, place, { env: { REQUIRE_AUTH, COMMENTS: 'moderated' } });
        const post = await blog.post('PUBLISHED');
        const first = await blog.comment(post, 'first');
        const live = await followAll(t, blog, '');
        const ofPost = await followAll(t, blog, `postId: "${post}"`);
        const resumed = await followAll(t, blog, after(first));
        const one = await blog.comment(post, 'waits', 'anonymous');
        const two = await blog.comment(post, 'waits too', 'other');
        const three = await blog.comment(post, 'removed', 'other');
        const second = await blog.comment(post, 'second');
        for (const each of [live, ofPost, resumed]) await hear(each, () => ['second']);
        // Both nodes approve it, through both doors, in the name of both who may.
        const query = `mutation { approveComment(id: "${two}") { id status } }`;
        const json = { 'Content-Type': 'application/json' };
        const approvals = blog.nodes.flatMap((node) =>
          [blog.people.author, blog.people.admin].flatMap((person) => {
            const patch = { method: 'PATCH', headers: { ...merge, ...person } };
            const asked = { method: 'POST', headers: { ...json, ...person } };
            return [
              node.fetch(`/comments/${two}`, { ...patch, body: '{"status":"PUBLISHED"}' }),
              node.fetch('/graphql', { ...asked, body: JSON.stringify({ query }) }),
            ];
          }),
        );
        for (const response of await Promise.all(approvals)) {
          if (response.status === 204) continue;
          const approveComment = { id: two, status: 'PUBLISHED' };
          assert.deepEqual(await response.json(), { data: { approveComment } });
        }
        await blog.send('DELETE', `/comments/${three}`);
        const third = await blog.comment(post, 'third');
        await blog.send('PATCH', `/comments/${one}`, { body: { status: 'PUBLISHED' } });
        await blog.comment(post, 'last');
        const words = ['waits too', 'third', 'waits', 'last'];
        for (const each of [live, ofPost, resumed]) await hear(each, () => words);
        // Who resumes gets it at the place that it has got.
        for (const [from, later] of [
          [first, ['second', ...words]],
          [second, words],
          [two, words.slice(1)],
          [third, words.slice(2)],
          [one, words.slice(3)],
        ] as const) {
          await hear(await followAll(t, blog, after(from)), () => later);
        }
        await hear(await followAll(t, blog, after(three)), () => ['NOT_FOUND']);
        await blog.comment(post, 'end');
        for (const each of [live, ofPost, resumed]) await hear(each, () => ['end']);
      });
    });
  }
}
