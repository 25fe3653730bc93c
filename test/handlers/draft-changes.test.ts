/** R44: a post begins and ceases to exist for others with its status, at once and on every node. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Blog, openBlog, type Person, toSeen } from '../support/drafts.ts';
import { stores } from '../support/stores.ts';

/** What somebody gets of a post on each node, twice: the second time it may be cached. */
async function statuses(blog: Blog, post: string, person: Person): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  const headers = blog.people[person];
  const query = `{ postById(postId: "${post}") { id } }`;
  for (const node of [...blog.nodes, ...blog.nodes]) {
    const list = await (await node.fetch('/posts?limit=1', { headers })).text();
    const result = await (await node.send('POST', '/graphql', { query }, headers)).text();
    const { status } = await node.fetch(`/posts/${post}/comments`, { headers });
    const single = await node.fetch(`/posts/${post}`, { headers });
    found.push([single.status, status, list.includes(post), result.includes(post)]);
  }
  return found;
}

for (const place of stores) {
  describe(`a post on a store ${place.name}`, { skip: place.skip }, () => {
    it('exists for others while it is published, from the change on', async (t) => {
      const blog = await openBlog(t, place, 'owners');
      const post = await blog.post('DRAFT');
      for (const status of ['PUBLISHED', 'DRAFT', 'PUBLISHED', 'PENDING_MODERATION']) {
        await blog.setStatus(post, status);
        const isOpen = status === 'PUBLISHED';
        const ofOthers = isOpen ? [200, 200, true, true] : [404, 404, false, false];
        for (const [person, expected] of [
          ['anonymous', ofOthers],
          ['other', ofOthers],
          ['author', [200, 200, isOpen, true]],
          ['admin', [200, 200, true, true]],
        ] as const) {
          const all = [expected, expected, expected, expected];
          assert.deepEqual(await statuses(blog, post, person), all, `${person} ${status}`);
        }
      }
    });

    it('that others have commented under a key is, when hidden, as one that was removed', async (t) => {
      const blog = await openBlog(t, place, 'owners');
      const [hidden, removed] = [await blog.post('PUBLISHED'), await blog.post('PUBLISHED')];
      const repeat = async (post: string, content: string): Promise<string> => {
        const headers = { 'Idempotency-Key': post, Prefer: 'return=representation' };
        const path = `/posts/${post}/comments`;
        const response = await blog.send('POST', path, { body: { content }, as: 'other', headers });
        const comment = response.headers.get('location')?.split('/').at(-1) ?? 'none';
        return toSeen(response, { [comment]: 'COMMENT' });
      };
      for (const post of [hidden, removed]) assert.match(await repeat(post, 'c'), /^\[201/);
      await blog.setStatus(hidden, 'DRAFT');
      await blog.remove(removed);
      // R40: what was done before is not looked at again; another request is refused.
      for (const [content, told] of [
        ['c', /^\[201.*replayed/],
        ['d', /^\[422/],
      ] as const) {
        const expected = await repeat(removed, content);
        assert.match(expected, told);
        assert.equal(await repeat(hidden, content), expected, content);
      }
    });
  });
}
